// Package owner says to which test a goroutine belongs.
package owner

import (
	"context"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
)

const label = "dueclaim.case"

// Do calls f on a goroutine that is known as the named test's, and so are all that it
// starts, those of an adapter among them: traces of a panic or a hang show it. Nobody but
// the adapter could recover a panic in a goroutine of its own, and the test that runs by
// then may be another one.
func Do(ctx context.Context, test string, f func()) {
	tell()
	pprof.Do(ctx, pprof.Labels(label, test), func(context.Context) { f() })
}

// Head is what the first line of such a goroutine's stack contains.
func Head(test string) string { return strconv.Quote(label) + ": " + strconv.Quote(test) }

// tell has the runtime print labels, which Go 1.26 does only when asked.
var tell = sync.OnceFunc(func() {
	settings := os.Getenv("GODEBUG")
	if !strings.Contains(settings, "tracebacklabels=") {
		_ = os.Setenv("GODEBUG", strings.TrimPrefix(settings+",tracebacklabels=1", ","))
	}
})

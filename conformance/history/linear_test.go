package history

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The bugs that only calls at once can see.
var raceBugs = []string{
	"claim checks, then writes", "settle checks, then writes", "insert checks, then writes",
	"cancel checks, then writes", "reschedule checks, then writes",
}

func TestEachRacyStoreIsFoundOut(t *testing.T) {
	n := 0
	for _, bug := range raceBugs {
		t.Run(bug, func(t *testing.T) {
			found := searchConcurrent(t, naiveStore(bug, false), seed(), Options{Histories: 2_000, InProcess: true})
			if assert.NotNil(t, found.broken, "no concurrent history shows the bug %q", bug) {
				n++
				t.Logf("found by history %d:\n%s", found.played, found.broken.text)
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("racy stores by concurrent histories: %d of %d", n, len(raceBugs)))
	t.Logf("racy stores: %d of %d caught", n, len(raceBugs))
}

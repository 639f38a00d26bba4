package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stands for the reader's own hooks in the page's sample.
const sampleHooks = `package myindex_test

import (
	"context"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// clocked is a store with a clock, as the sample declares it.
type clocked struct{ *claim.Memory }

func (clocked) Now(ctx context.Context) (time.Time, error) { return time.Now().UTC(), ctx.Err() }

func init() {
	freshIndex = func(*testing.T) core.TimeIndex {
		idx := heapindex.New()
		return &struct { // what the sample declares, and no more
			core.TimeIndex
			core.Taker
		}{idx, idx}
	}
	peerIndex = func(_ *testing.T, first core.TimeIndex) core.TimeIndex { return first }
	freshStore = func(*testing.T) core.Store { return clocked{claim.NewMemory(claim.MemoryOptions{})} }
	peerStore = func(_ *testing.T, first core.Store) core.Store { return first }
}
`

// A name that the sample doesn't have would run no test, with exit status 0.
func TestTheCommandsOfTheAdapterPageRunTestsOfItsSample(t *testing.T) {
	page, err := os.ReadFile("../../docs/adapter.md")
	require.NoError(t, err)
	dir, err := os.MkdirTemp(".", "sample-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	samples := 0
	for _, m := range goBlock.FindAllSubmatch(page, -1) {
		if strings.Contains(string(m[1]), "package myindex_test") {
			samples++
			require.NoError(t, os.WriteFile(filepath.Join(dir, "sample_test.go"), m[1], 0o644))
		}
	}
	require.Equal(t, 1, samples, "samples of a test on the page")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hooks_test.go"), []byte(sampleHooks), 0o644))

	binary := filepath.Join(dir, "sample.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "./"+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	binary, err = filepath.Abs(binary)
	require.NoError(t, err)
	commands := regexp.MustCompile("go test ([^`\n#]*-run '[^']+')").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(commands), 3)
	ran := regexp.MustCompile(`(?m)^ +--- PASS: Test\w+/\w+`)
	for _, command := range commands {
		args := strings.ReplaceAll(strings.ReplaceAll(" "+command[1], " -", " -test."), "'", "")
		run := exec.CommandContext(t.Context(), binary, strings.Fields(args)...)
		run.Dir = dir
		out, err := run.CombinedOutput()
		assert.NoError(t, err, "%s:\n%s", command[0], out)
		assert.Regexp(t, ran, string(out), "%s ran no case", command[0])
	}
}

package history

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/anishathalye/porcupine"
)

// concurrency is what came of concurrent histories.
type concurrency struct {
	seed   uint64 // plays the last history first
	played int
	// Of the items of calls, by what was called: how many there were, how many of
	// them had an unknown outcome, and how many of those because the store failed.
	items, unknown, failed [kindCount]int
	last                   error // of a call that failed
	mayFail                float64
	checked, undecided     int // histories of one id
	broken                 *contradiction
}

// contradiction is what ended the histories, such as that of an id that no order
// explains, which comes with a picture.
type contradiction struct {
	text  string
	model porcupine.Model
	info  porcupine.LinearizationInfo
}

func (f *concurrency) count(events []event, last error) {
	for _, e := range events {
		f.items[e.in.kind]++
		if e.out.unknown {
			f.unknown[e.in.kind]++
		}
		if e.failed {
			f.failed[e.in.kind]++
		}
	}
	if last != nil {
		f.last = last
	}
}

func sum(counts [kindCount]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// counts tells how much was tried, for the log.
func (f *concurrency) counts() string {
	text := fmt.Sprintf("%d calls of %d clients about %d ids, %d of them of unknown outcome, %d because the store failed; %d histories of an id too tangled to check",
		sum(f.items), clients, ids, sum(f.unknown), sum(f.failed), f.undecided)
	if f.last != nil {
		text += fmt.Sprintf("; the last failure: %v", f.last)
	}
	return text
}

// So many items at least tell how often the store fails: few at the end, many while
// it may still get better.
const (
	few  = 20
	many = 200
)

// failing says of what too much failed, "" where the store answers well enough. Lost
// deadlocks are to be expected, of one call in a hundred or so; but where one in four
// fails, their unknown outcomes explain nearly any answer of the others.
func (f *concurrency) failing(least int) string {
	for k := range kindCount {
		if n := f.items[k]; n >= least && float64(f.failed[k]) > f.mayFail*float64(n) {
			return fmt.Sprintf("%s fails too often to tell whether it is right: %d of %d times; the last failure of a call: %v", k, f.failed[k], n, f.last)
		}
	}
	if n := sum(f.items); n >= least && float64(sum(f.failed)) > f.mayFail*float64(n) {
		return fmt.Sprintf("calls fail too often to tell whether they are right: %d of %d; the last failure: %v", sum(f.failed), n, f.last)
	}
	return ""
}

// tangled says that more than one in ten histories of an id can't be checked, of all
// that there are to be. A single one may well be bad luck.
func (f *concurrency) tangled(all int) string {
	if f.undecided <= 1+all/10 {
		return ""
	}
	return fmt.Sprintf("%d of the %d histories of an id checked so far are too tangled for it: nothing is proven by them. Play fewer Steps in a history, or look why so many outcomes are unknown (%d of %d)",
		f.undecided, f.checked, sum(f.unknown), sum(f.items))
}

// text is the failure as go test prints it.
func (f *concurrency) text(test string) string {
	return fmt.Sprintf("%s\nIt was history %d of the run. To make the same calls again, as the first ones (whether they meet the same way is up to chance):\n  go test -run '%s' -rapid.seed=%d",
		f.broken.text, f.played, pattern(test), f.seed)
}

// draw writes porcupine's picture of the history, where go test keeps it.
func (c *contradiction) draw(t *testing.T) {
	if len(c.info.PartialLinearizations()) == 0 {
		return
	}
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		t.Log("go test -artifacts keeps a picture of such a history")
		return
	}
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(c.model, c.info, path); err != nil {
		t.Logf("no picture of the history: %v", err)
		return
	}
	t.Logf("a picture of the history: %s", path)
}

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
			if found := raceFound(t, bug, Options{}); assert.NotNil(t, found.broken, "no concurrent history shows the bug %q", bug) {
				n++
				t.Logf("found by history %d:\n%s", found.played, found.text(t.Name()))
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("racy stores by concurrent histories: %d of %d", n, len(raceBugs)))
	t.Logf("racy stores: %d of %d caught", n, len(raceBugs))
}

// What is allowed to a store that reads back hides none of these bugs.
func TestEachRacyStoreThatReadsBackIsFoundOut(t *testing.T) {
	for _, bug := range raceBugs {
		t.Run(bug, func(t *testing.T) {
			found := raceFound(t, bug, Options{ReadsBack: true})
			assert.NotNil(t, found.broken, "no concurrent history shows the bug %q", bug)
		})
	}
}

func raceFound(t *testing.T, bug string, o Options) concurrency {
	o.Histories, o.InProcess = 2_000, true
	return searchConcurrent(t, naiveStore(bug, false), seed(), o)
}

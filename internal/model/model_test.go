package model

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// most bounds a search: past it the model is not as small as it should be.
const most = 5_000_000

// With any number of faults. With DUECLAIM_STRESS also messages take effect late.
func TestEveryOrderOfStepsWithOneTask(t *testing.T) {
	sys := &system{rules: right(), tasks: 1}
	if stress() {
		sys.late, sys.retries = 1, 1
	}
	explore(t, sys, 0)
}

// As with one task, which ends, is deleted, and comes again: what was sent in its first
// life may arrive in its second.
func TestEveryOrderOfStepsWithAnIDThatIsUsedAgain(t *testing.T) {
	sys := &system{rules: right(), tasks: 1, late: 1, reuses: true, brief: !stress()}
	explore(t, sys, 0)
}

// Without faults, and with DUECLAIM_STRESS with one of any kind at any time.
func TestEveryOrderOfStepsWithTwoTasks(t *testing.T) {
	sys := &system{rules: right(), tasks: 2, bounded: true, single: true, brief: true}
	faults := int8(0)
	if stress() {
		sys.brief, faults = false, 1
	}
	explore(t, sys, faults)
}

func explore(t *testing.T, sys *system, faults int8) {
	t.Parallel()
	began := time.Now()
	g, wrong := search(sys, faults, most)
	require.Nil(t, wrong, "%v", wrong)
	number := "any number of"
	if sys.bounded {
		number = fmt.Sprint(faults)
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("model of the claim protocol, 2 workers, tasks %d: %s faults, %d late messages, %d states, %d steps, depth %d, %v",
		sys.tasks, number, sys.late, len(g.states), g.steps, g.depth, time.Since(began).Round(10*time.Millisecond)))
}

// Each error must be found, or the search shows nothing.
func TestErrorsInTheRulesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rules)
		want   string
	}{
		"a settlement is accepted under any token": {func(r *rules) {
			r.settle = func(row *claim.Row, s core.Settlement) bool {
				s.Grant.Token, s.Grant.Holder = row.Token, row.Holder
				return (*claim.Row).Settle(row, s)
			}
		}, "an older holder's settlement was accepted"},
		"a settlement doesn't look at the status": {func(r *rules) {
			r.settle = func(row *claim.Row, s core.Settlement) bool {
				row.Status = claim.Running
				return (*claim.Row).Settle(row, s)
			}
		}, "two completions were recorded"},
		"a claim doesn't look at the lease": {func(r *rules) {
			r.claim = func(row *claim.Row, l core.Lease) bool {
				l.Now = l.Now.Add(time.Hour)
				return (*claim.Row).Claim(row, l)
			}
		}, "a live lease was taken over"},
		"a claim keeps the token": {func(r *rules) {
			r.claim = func(row *claim.Row, l core.Lease) bool {
				token := row.Token
				done := (*claim.Row).Claim(row, l)
				row.Token = token
				return done
			}
		}, "a grant without a higher token"},
		"a claim takes finished tasks": {func(r *rules) {
			r.claim = func(row *claim.Row, l core.Lease) bool {
				if row.Status == claim.DoneState {
					row.Status = claim.Pending
				}
				return (*claim.Row).Claim(row, l)
			}
		}, "a finished task was granted"},
		"an id that is used again begins with what its producer takes for the time": {func(r *rules) {
			r.insert = func(newest int64) int64 { return newest - 1 }
		}, "a grant without a higher token"},
		"an extension doesn't look at the holder": {func(r *rules) {
			r.extend = func(row *claim.Row, g core.Grant, until time.Time) bool {
				g.Token, g.Holder = row.Token, row.Holder
				return (*claim.Row).Extend(row, g, until)
			}
		}, "a lease was extended by one who doesn't hold it"},
		"nobody sweeps": {func(r *rules) { r.noSweep = true }, "the end is out of reach"},
		"handlers aren't cancelled in time": {func(r *rules) { r.noCancel = true },
			"two workers that aren't paused run the same task"},
		"neither margin nor grace": {func(r *rules) { r.noGrace = true },
			"two workers that aren't paused run the same task"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys := &system{rules: right(), tasks: 1, late: 1, retries: 1, reuses: true}
			if name == "nobody sweeps" { // all states have to be seen to know that none leads out
				sys.late, sys.retries = 0, 0
			}
			c.change(&sys.rules)
			_, wrong := search(sys, 0, most)
			require.NotNil(t, wrong)
			require.Equal(t, c.want, wrong.what)
			t.Log(wrong)
		})
	}
}

package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// What the observer hears of a task that its handler has settled is what the handler
// says, and no outcome where it doesn't.
func TestTheObserverHearsWhatAHandlerSaysItSettled(t *testing.T) {
	in10 := time.Now().Add(10 * time.Second)
	for name, c := range map[string]struct {
		settles core.Settlement
		returns func(s core.Settlement) error
		told    core.Outcome
	}{
		"done":              {core.Settlement{Outcome: core.Done}, core.SettledAs, core.Done},
		"released":          {core.Settlement{Outcome: core.Released, Due: in10}, core.SettledAs, core.Released},
		"retry":             {core.Settlement{Outcome: core.Retry, Due: in10, Err: "x"}, core.SettledAs, core.Retry},
		"dead":              {core.Settlement{Outcome: core.DeadLetter, Err: "x"}, core.SettledAs, core.DeadLetter},
		"wrapped":           {core.Settlement{Outcome: core.DeadLetter}, func(s core.Settlement) error { return fmt.Errorf("by hand: %w", core.SettledAs(s)) }, core.DeadLetter},
		"unsaid, done":      {core.Settlement{Outcome: core.Done}, func(core.Settlement) error { return core.Settled }, 0},
		"unsaid, released":  {core.Settlement{Outcome: core.Released, Due: in10}, func(core.Settlement) error { return core.Settled }, 0},
		"of another grant":  {core.Settlement{Outcome: core.Done}, func(s core.Settlement) error { s.Grant.Token++; return core.SettledAs(s) }, 0},
		"without a due":     {core.Settlement{Outcome: core.Done}, func(s core.Settlement) error { s.Outcome = core.Retry; return core.SettledAs(s) }, 0},
		"of no outcome":     {core.Settlement{Outcome: core.Done}, func(s core.Settlement) error { s.Outcome = 77; return core.SettledAs(s) }, 0},
		"said in two words": {core.Settlement{Outcome: core.Done}, func(s core.Settlement) error { return fmt.Errorf("%w, %w", core.Settled, core.SettledAs(s)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
				c.settles.Grant = job.Grant
				if err := p.store.Settle(ctx, job.Now(), []core.Settlement{c.settles}); err != nil {
					return err
				}
				return c.returns(c.settles)
			})
			var told []core.Settlement
			s := p.scheduler(t, h, core.Options{Observer: core.Observer{Settled: func(s core.Settlement, err error) {
				assert.NoError(t, err)
				told = append(told, s)
			}}})
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now().Add(-time.Second)}))
			_, err := s.Tick(t.Context(), time.Now())
			require.NoError(t, err)
			require.Len(t, told, 1)
			assert.Equal(t, core.ID("x"), told[0].Grant.ID)
			assert.Equal(t, c.told, told[0].Outcome)
			left, err := p.idx.Due(t.Context(), time.Now().Add(time.Hour), 2)
			require.NoError(t, err)
			if told[0].Due.IsZero() {
				assert.Empty(t, left)
			} else {
				assert.Equal(t, []core.Entry{{ID: "x", Due: core.CeilMilli(in10)}}, left, "the index knows when it is due again")
			}
		})
	}
}

// A handler that says both that it settled the task and that something failed is not
// taken at its word: the store knows.
func TestSettledBesideAFailureLeavesNoTaskRunning(t *testing.T) {
	for name, really := range map[string]bool{"settled": true, "not settled": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParts(t)
				runs := 0
				h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
					if runs++; runs > 1 {
						return nil
					}
					if really {
						require.NoError(t, p.store.Settle(ctx, job.Now(), []core.Settlement{job.Done()}))
					}
					return fmt.Errorf("%w, but: %w", core.Settled, errAway)
				})
				stop := running(t, p.scheduler(t, h, core.Options{}))
				require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
				time.Sleep(3 * time.Second) // a lease is 30
				require.NoError(t, stop())
				row, _ := p.store.Task("x")
				assert.Equal(t, "done", string(row.Status))
				assert.Equal(t, map[bool]int{true: 1, false: 2}[really], runs)
			})
		})
	}
}

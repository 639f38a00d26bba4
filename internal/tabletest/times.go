package tabletest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// testTimes: what is decided by the server's clock, which here is the process's.
func testTimes(t *testing.T, mode claim.Mode, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	run("nothing starts before its time, however far ahead it may be claimed", func(t *testing.T, h Handle) { neverEarly(t, mode, h) })
	if mode == claim.Transition {
		run("a step is made when the row is due by the present time, whatever the claim's was", func(t *testing.T, h Handle) {
			now := core.FloorMilli(time.Now())
			h.Put(t, core.Task{ID: "due", Due: now.Add(-time.Minute)}, core.Task{ID: "put off", Due: now.Add(time.Minute)})
			for id, want := range map[core.ID]string{"due": Done, "put off": Pending} {
				ahead := now.Add(time.Hour)
				c := h.want(t, core.Granted, core.Lease{Holder: "a", Now: now, DueBy: ahead, Until: ahead.Add(LeaseFor)}, id)
				require.NoError(t, h.Transition(t.Context(), &core.Job{Task: c.Task, Grant: c.Grant}, func(func(string) error) error { return nil }))
				assert.Equal(t, want, h.read(t, string(id), "status"), id)
			}
		})
		return
	}
	run("a claim that comes when its caller has given it up changes nothing and says so", func(t *testing.T, h Handle) {
		h.Put(t, one, core.Task{ID: "2", Due: base}, core.Task{ID: "later", Due: at(90_000)})
		l := lease("a", base)
		l.By = time.Now().Add(-time.Minute)
		_, err := h.Claim(t.Context(), []core.ID{"1", "later", "2"}, l)
		require.ErrorIs(t, err, core.ErrNotDone)
		assert.Equal(t, []string{Pending, "", Pending}, []string{h.read(t, "1", "status"), h.read(t, "1", "attempts"), h.read(t, "2", "status")})
		got, err := h.Claim(t.Context(), []core.ID{"later", "none"}, l)
		require.NoError(t, err, "there was nothing to be done")
		assert.Equal(t, []core.Verdict{core.NotDue, core.Gone}, []core.Verdict{got[0].Verdict, got[1].Verdict})
		l.By = time.Now().Add(time.Minute)
		h.want(t, core.Granted, l, "1")

		// A row whose holder is gone is as it was, too.
		over := lease("b", base.Add(2*LeaseFor))
		over.By = time.Now().Add(-time.Minute)
		_, err = h.Claim(t.Context(), []core.ID{"1"}, over)
		require.ErrorIs(t, err, core.ErrNotDone)
		assert.Equal(t, "1", h.read(t, "1", "attempts"))
	})
}

// neverEarly runs a row that is due soon on a scheduler that would claim it seconds ahead.
// The handler asks for another run in a while; after that the row is done.
func neverEarly(t *testing.T, mode claim.Mode, h Handle) {
	const soon = 400 * time.Millisecond
	due := core.CeilMilli(time.Now().Add(soon))
	h.Put(t, core.Task{ID: "1", Due: due})
	idx := heapindex.New()
	require.NoError(t, idx.Add(t.Context(), []core.Entry{{ID: "1", Due: due}}))
	type start struct{ at, want time.Time }
	var starts []start
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		starts = append(starts, start{time.Now(), due})
		if len(starts) == 1 {
			due = time.Now().Add(soon)
			return core.RetryAt(due, errors.New("not yet"))
		}
		if mode != claim.Transition {
			return nil
		}
		return h.Transition(ctx, job, func(func(string) error) error { return nil })
	})
	s, err := core.New(idx, h.Claimer, handler, core.Options{
		Logger: slog.New(slog.DiscardHandler), Ahead: 5 * time.Second,
		Observer: core.Observer{Settled: func(s core.Settlement, _ error) {
			if s.Outcome == core.Done {
				stop()
			}
		}},
	})
	require.NoError(t, err)
	require.NoError(t, s.Run(ctx))
	require.Len(t, starts, 2)
	for i, s := range starts {
		assert.GreaterOrEqual(t, s.at.Sub(s.want), -5*time.Millisecond, "start %d, counted from the time before which it must not be", i+1)
	}
}

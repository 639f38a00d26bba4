package tabletest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// claimReads: nothing marks a row as taken.
func claimReads(t *testing.T, h Handle, one core.Task) {
	t.Helper()
	h.Put(t, one)
	a := h.want(t, core.Granted, lease("a", base), "1")
	b := h.want(t, core.Granted, lease("b", at(1)), "1")
	assert.Equal(t, Pending, h.read(t, "1", "status"))
	assert.Greater(t, b.Grant.Token, a.Grant.Token)
	assert.Equal(t, at(1).Add(LeaseFor), b.At)
	h.wantWaiting(t, base, core.Entry{ID: "1", Due: base})
	require.NoError(t, h.Extend(t.Context(), []core.Grant{a.Grant, {ID: "2", Token: 1, Holder: "a"}}[:1], at(60_000)))
	h.update(t, "1", "status = 'paid'")
	lost(t, h.Extend(t.Context(), []core.Grant{a.Grant}, at(60_000)), "there is nothing left to do")
}

// stepOrFailure: Done is believed only when the row has left its state.
func stepOrFailure(t *testing.T, h Handle, one core.Task) {
	t.Helper()
	h.Put(t, one)
	c := h.want(t, core.Granted, lease("a", base), "1")
	require.ErrorIs(t, h.Settle(t.Context(), at(1), settle(c, core.Done, time.Time{})), core.ErrUnfinished)
	require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.Retry, at(5))))
	require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.Released, at(5))))
	h.wantWaiting(t, base, core.Entry{ID: "1", Due: base})
	h.update(t, "1", "status = 'paid'")
	require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.Done, time.Time{})), "somebody made the step")
	h.Put(t, core.Task{ID: "2", Due: base})
	c = h.want(t, core.Granted, lease("a", base), "2")
	require.NoError(t, h.Settle(t.Context(), at(1), settle(c, core.DeadLetter, time.Time{})))
	assert.Equal(t, Dead, h.read(t, "2", "status"))
}

// stepOnce runs handlers on a scheduler: one that makes the step, one whose
// writes fail, one that comes after a payment, one that does nothing.
func stepOnce(t *testing.T, h Handle) {
	t.Helper()
	now := time.Now().Add(-time.Second)
	var tasks []core.Task
	for _, id := range []core.ID{"step", "writes fail", "paid", "forgets"} {
		tasks = append(tasks, core.Task{ID: id, Due: now})
	}
	h.Put(t, tasks...)
	idx := heapindex.New()
	prod, err := core.NewProducer(idx, h.Claimer, core.ProducerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for _, task := range tasks {
		require.NoError(t, prod.Track(t.Context(), core.Entry{ID: task.ID, Due: core.CeilMilli(now)}))
	}
	returned, called := map[core.ID]error{}, map[core.ID]bool{}
	errWrite := errors.New("no room")
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		id := job.Task.ID
		if id == "forgets" {
			return nil
		}
		if id == "paid" {
			h.update(t, "paid", "status = 'paid'")
		}
		err := h.Transition(ctx, job, func(exec func(string) error) error {
			called[id] = true
			if err := exec("UPDATE " + h.Name + " SET kind = 'made' WHERE order_id = '" + string(id) + "'"); err != nil {
				return err
			}
			if id == "writes fail" {
				return errWrite
			}
			return nil
		})
		returned[id] = err
		return err
	})
	var failed []error
	s, err := core.New(idx, h.Claimer, handler, core.Options{
		Logger: slog.New(slog.DiscardHandler), Slots: 1,
		Observer: core.Observer{Settled: func(_ core.Settlement, err error) {
			if err != nil {
				failed = append(failed, err)
			}
		}},
	})
	require.NoError(t, err)
	for range tasks { // one at a time, in the order of their due times: a retry is later
		n, err := s.Tick(t.Context(), time.Now())
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	}
	assert.Equal(t, map[core.ID]bool{"step": true, "writes fail": true}, called, "whose writes were asked for")
	require.NoError(t, returned["step"])
	require.NoError(t, returned["paid"], "no error: there is nothing left to do")
	require.ErrorIs(t, returned["writes fail"], errWrite)
	assert.Equal(t, []string{Done, "made", Pending, "", "paid", "", Pending, ""}, []string{
		h.read(t, "step", "status"), h.read(t, "step", "kind"),
		h.read(t, "writes fail", "status"), h.read(t, "writes fail", "kind"),
		h.read(t, "paid", "status"), h.read(t, "paid", "kind"),
		h.read(t, "forgets", "status"), h.read(t, "forgets", "kind"),
	})
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], core.ErrUnfinished)
}

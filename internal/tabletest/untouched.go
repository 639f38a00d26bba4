package tabletest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// Untouched maps the commonest table that there is: an id, a status, and the time of the
// last change, which the database or the application keeps. An order that nobody touched
// for half an hour is cancelled.
func Untouched(name string, updated claim.TimeColumn) claim.Table {
	updated.Name = "updated_at"
	return claim.Table{
		Name: name, ID: claim.IDColumn{Name: "order_id"},
		State: claim.StateColumn{Name: "status", Pending: claim.Text("unpaid"), Done: claim.Text("cancelled")},
		Due:   claim.DueTime{Base: updated, After: After},
	}
}

// TestUntouched sees that Verify takes the mapping, and that what it says is so. touch is what the
// user's own UPDATE sets besides the status, "" where the database keeps updated_at. Of
// h no Put is needed.
func TestUntouched(t *testing.T, h Handle, updated claim.TimeColumn, found claim.Findings, touch string) {
	t.Helper()
	for _, f := range found {
		assert.Less(t, f.Severity, claim.Warning, "%s", f)
	}
	updated.Name = "updated_at"
	set := func(id, status string) { h.update(t, id, "status = '"+status+"'"+touch) }
	now := time.Now()
	ago := func(d time.Duration) string { return h.Literal(updated, updated.AtLeast(now.Add(-d))) }
	ids := []core.ID{"left", "touched", "paid", "touched late"}
	idx := heapindex.New()
	quiet := slog.New(slog.DiscardHandler)
	prod, err := core.NewProducer(idx, h.Claimer, core.ProducerOptions{Logger: quiet})
	require.NoError(t, err)
	for _, id := range ids {
		h.Exec(t, "INSERT INTO "+h.Name+" (order_id, status, updated_at) VALUES ('"+string(id)+"', 'unpaid', "+ago(After+time.Minute)+")")
		require.NoError(t, prod.Track(t.Context(), core.Entry{ID: id, Due: core.CeilMilli(now.Add(-time.Minute))}))
	}
	set("touched", "held")
	set("touched", "unpaid")
	set("paid", "paid")
	c := h.want(t, core.NotDue, lease("a", time.Now()), "touched")
	assert.InDelta(t, After.Minutes(), time.Until(c.At).Minutes(), 5, "half an hour begins anew")
	h.want(t, core.Gone, lease("a", time.Now()), "paid")

	var mu sync.Mutex
	steps := map[core.ID]int{}
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		if job.Task.ID == "touched late" {
			set("touched late", "held")
			set("touched late", "unpaid")
		}
		return h.Transition(ctx, job, func(func(string) error) error {
			mu.Lock()
			defer mu.Unlock()
			steps[job.Task.ID]++
			return nil
		})
	})
	s, err := core.New(idx, h.Claimer, handler, core.Options{Logger: quiet})
	require.NoError(t, err)
	for range 3 {
		_, err := s.Tick(t.Context(), time.Now())
		require.NoError(t, err)
	}
	assert.Equal(t, map[core.ID]int{"left": 1}, steps)
	for id, status := range map[string]string{"left": "cancelled", "touched": "unpaid", "paid": "paid", "touched late": "unpaid"} {
		assert.Equal(t, status, h.read(t, id, "status"), id)
	}
}

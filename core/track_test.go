package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestTrackAsksTheStoreAboutIds(t *testing.T) {
	store, idx := &stepStore{}, heapindex.New()
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	now := core.CeilMilli(time.Now())
	err = prod.Track(t.Context(), core.Entry{ID: "1", Due: now}, core.Entry{ID: "007", Due: now}, core.Entry{ID: "0 ", Due: now}, core.Entry{ID: "2", Due: now})
	require.ErrorIs(t, err, core.ErrInvalid)
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Len(t, batch.Items, 2)
	assert.Equal(t, 1, batch.Items[0].Index)
	require.ErrorIs(t, batch.Items[0], core.ErrInvalid)
	require.ErrorContains(t, batch.Items[0], "leading zero")
	assert.Equal(t, 2, batch.Items[1].Index)
	require.ErrorContains(t, batch.Items[1], "white space", "ID.Check comes first")
	due, err := idx.Due(t.Context(), now, 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{{ID: "1", Due: now}, {ID: "2", Due: now}}, due)
}

// clocklessNow is a claimer whose clock can't be read.
type clocklessNow struct {
	core.Claimer
	readings int
}

func (c *clocklessNow) Now(context.Context) (time.Time, error) {
	c.readings++
	return time.Time{}, errAway
}

func TestAProducerOnAStoreThatKeepsNoTasksSaysSoAtOnce(t *testing.T) {
	store := &clocklessNow{Claimer: &stepStore{}}
	prod, err := core.NewProducer(heapindex.New(), store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	now := time.Now()
	task := core.Task{ID: "1", Due: now}
	_, cancelErr := prod.Cancel(t.Context(), "1")
	for op, err := range map[string]error{
		"schedule":      prod.Schedule(t.Context(), task),
		"schedule none": prod.Schedule(t.Context()),
		"schedule call": prod.ScheduleCall(t.Context(), core.Call{ID: "c", Now: now}, task),
		"cancel":        cancelErr,
		"reschedule":    prod.Reschedule(t.Context(), core.Move{ID: "1", To: now}),
	} {
		require.ErrorIs(t, err, core.ErrInvalid, op)
		require.ErrorContains(t, err, "doesn't keep tasks; insert or change the row yourself, then call Track", op)
	}
	require.NoError(t, prod.Track(t.Context(), core.Entry{ID: "1", Due: now}))
	assert.Zero(t, store.readings, "none of them needs the store's clock")
}

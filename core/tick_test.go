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
	"github.com/dueclaim/dueclaim/heapindex"
)

// slowAdd is an index whose Add takes long enough for handlers to end.
type slowAdd struct{ *heapindex.Index }

func (x slowAdd) Add(ctx context.Context, e []core.Entry) error {
	time.Sleep(10 * time.Millisecond)
	return x.Index.Add(ctx, e)
}

func TestTickStartsAtMostSlotsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		for i := range 5 {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Due: time.Now()}))
		}
		s := newScheduler(t, slowAdd{p.idx}, p.store, &recorder{}, core.Options{Slots: 1})
		for range 5 {
			n, err := s.Tick(t.Context(), time.Now().Add(time.Minute))
			require.NoError(t, err)
			assert.Equal(t, 1, n)
		}
	})
}

func TestTickEndsWhenResultsCannotBeRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		store.set(failing("settle"))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		s := newScheduler(t, p.idx, store, &recorder{}, core.Options{})
		start := time.Now()
		_, err := s.Tick(t.Context(), time.Now().Add(time.Second))
		require.ErrorIs(t, err, errAway)
		assert.Less(t, time.Since(start), time.Minute)
	})
}

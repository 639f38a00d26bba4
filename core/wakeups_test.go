package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// The index isn't a Watcher, so nothing but the claim's own answer, NotDue, tells
// the scheduler that the entry which it has just moved to the end of a lease comes
// up before that. The steps before Run leave the index at 10 s and the store at
// 12 s; until then no sweep and no poll comes.
func TestMovedEntryWakesASchedulerThatWouldSleepLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idx := &lossyIndex{TimeIndex: heapindex.New()}
		store := claim.NewMemory(claim.MemoryOptions{})
		prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		late := make(chan time.Duration, 1)
		h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			late <- job.Lateness()
			return nil
		})
		now := core.CeilMilli(time.Now())
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "x", Due: now.Add(10 * time.Second)}))
		require.NoError(t, prod.Reschedule(t.Context(), core.Move{ID: "x", To: now.Add(12 * time.Second)}))
		stop := running(t, newScheduler(t, idx, store, h, core.Options{Poll: time.Minute, NearSweep: time.Minute}))
		assert.Less(t, <-late, 20*time.Millisecond)
		require.NoError(t, stop())
	})
}

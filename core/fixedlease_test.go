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

type fixedLease struct {
	*claim.Memory
	d time.Duration
}

func (f fixedLease) LeaseFor() time.Duration { return f.d }

func TestAStoresOwnLengthOfLeasesIsTaken(t *testing.T) {
	_, err := core.New(heapindex.New(), fixedLease{claim.NewMemory(claim.MemoryOptions{}), time.Minute}, &core.Mux{}, core.Options{Lease: 30 * time.Second, Logger: quiet()})
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorContains(t, err, "Options.Lease is 30s and the claim store's leases last 1m0s")
	for fixed, want := range map[time.Duration]time.Duration{7 * time.Minute: 7 * time.Minute, 0: 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			idx, memory := heapindex.New(), claim.NewMemory(claim.MemoryOptions{})
			prod, err := core.NewProducer(idx, memory, core.ProducerOptions{Logger: quiet()})
			require.NoError(t, err)
			require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
			lasts := make(chan time.Duration, 1)
			h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
				task, _ := memory.Task(job.Task.ID)
				lasts <- time.Until(claim.Time(task.LeaseUntil))
				return nil
			})
			stop := running(t, newScheduler(t, idx, fixedLease{memory, fixed}, h, core.Options{}))
			assert.InDelta(t, want.Seconds(), (<-lasts).Seconds(), 1)
			require.NoError(t, stop())
		})
	}
}

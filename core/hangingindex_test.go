package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// hangingIndex answers nothing while it hangs, as a frozen server.
type hangingIndex struct {
	core.TimeIndex
	hangs atomic.Bool
}

func (x *hangingIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if x.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return x.TimeIndex.Due(ctx, now, limit)
}

func (x *hangingIndex) Move(ctx context.Context, moves []core.Move) error {
	if x.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return x.TimeIndex.Move(ctx, moves)
}

// A heartbeat tells the index after the store. It must not be late because of that.
func TestAnIndexThatHangsCostsNoLease(t *testing.T) {
	for _, lease := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 30 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParts(t)
				idx := &hangingIndex{TimeIndex: p.idx}
				var lost atomic.Int32
				h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
					select {
					case <-ctx.Done():
						lost.Add(1)
					case <-time.After(time.Minute):
					}
					return nil
				})
				stop := running(t, newScheduler(t, idx, p.store, h, core.Options{Lease: lease}))
				require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
				time.Sleep(lease)
				idx.hangs.Store(true)
				time.Sleep(50 * time.Second)
				assert.Zero(t, lost.Load(), "leases lost while the index hung")
				idx.hangs.Store(false)
				time.Sleep(time.Minute)
				require.NoError(t, stop())
			})
		})
	}
}

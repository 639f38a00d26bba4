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
	"github.com/dueclaim/dueclaim/heapindex"
)

// readOnlyIndex refuses writes, or all calls.
type readOnlyIndex struct {
	*heapindex.Index
	readOnly, away atomic.Bool
}

func (x *readOnlyIndex) err(write bool) error {
	if x.away.Load() || write && x.readOnly.Load() {
		return errAway
	}
	return nil
}

func (x *readOnlyIndex) Add(ctx context.Context, entries []core.Entry) error {
	if err := x.err(true); err != nil {
		return err
	}
	return x.Index.Add(ctx, entries)
}

func (x *readOnlyIndex) AddMissing(ctx context.Context, entries []core.Entry) error {
	if err := x.err(true); err != nil {
		return err
	}
	return x.Index.AddMissing(ctx, entries)
}

func (x *readOnlyIndex) Move(ctx context.Context, moves []core.Move) error {
	if err := x.err(true); err != nil {
		return err
	}
	return x.Index.Move(ctx, moves)
}

func (x *readOnlyIndex) Remove(ctx context.Context, entries []core.Entry) error {
	if err := x.err(true); err != nil {
		return err
	}
	return x.Index.Remove(ctx, entries)
}

func (x *readOnlyIndex) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	if err := x.err(false); err != nil {
		return nil, time.Time{}, err
	}
	return x.Index.Take(ctx, now, until, limit)
}

// An index that is back is well, and one that reads and doesn't write isn't, though
// nobody has anything to write any more.
func TestHealthOfAnIndexGoesByWhatItTakesNow(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newParts(t)
			idx := &readOnlyIndex{Index: p.idx}
			h := core.HandlerFunc(func(context.Context, *core.Job) error { time.Sleep(2 * time.Second); return nil })
			s := newScheduler(t, idx, p.store, h, core.Options{Lease: 3 * time.Second})
			stop := running(t, s)
			time.Sleep(3 * time.Second)
			p.schedule(t, 20, time.Now().Add(500*time.Millisecond))
			time.Sleep(time.Second)
			require.True(t, s.Health().Index.OK)
			if readOnly {
				idx.readOnly.Store(true)
			} else {
				idx.away.Store(true)
			}
			time.Sleep(10 * time.Second) // heartbeats can't move, results can't remove
			require.False(t, s.Health().Index.OK)
			if readOnly {
				time.Sleep(3 * time.Minute) // with nothing to write
				require.False(t, s.Health().Index.OK, "it reads, and writes nothing")
			}
			idx.readOnly.Store(false)
			idx.away.Store(false)
			time.Sleep(3 * time.Second)
			assert.True(t, s.Health().Index.OK, "read-only %v: %v", readOnly, s.Health().Index.Err)
			require.NoError(t, stop())
		})
	}
}

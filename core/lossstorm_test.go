package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// twoServers is an index behind an address that leads to another server each time.
type twoServers struct {
	*namedIndex
	calls atomic.Int64
}

func (x *twoServers) Generation(context.Context) (string, error) {
	return fmt.Sprint("server ", x.calls.Add(1)), nil
}

func TestAnIndexThatTellsOfLossAfterLossDoesntMakeTheStoreBeReadWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &twoServers{namedIndex: newNamedIndex()}
		store := &hookedStore{Store: p.store}
		scheduleFar(t, p, idx, 20_000)
		var out logBook
		stop := running(t, newScheduler(t, idx, store, &recorder{}, core.Options{Logger: out.logger()}))
		time.Sleep(10 * time.Minute)
		pages, sweeps := store.count("waiting"), 600
		assert.Less(t, (pages-sweeps)/21, 40, "readings of all rows in ten minutes; %d pages", pages)
		assert.LessOrEqual(t, len(out.with("may have lost entries")), 11, "warnings")
		require.NoError(t, stop())
	})
}

// downIndex says nothing of its set-up, for good.
type downIndex struct{ core.TimeIndex }

func (downIndex) CheckSetup(context.Context) ([]string, error) { return nil, errAway }

type warningStore struct{ core.Store }

func (warningStore) CheckSetup(context.Context) ([]string, error) {
	return []string{"the disk is a floppy"}, nil
}

func TestAnIndexThatIsAwayKeepsNobodyFromTheStoresWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		var out logBook
		stop := running(t, newScheduler(t, downIndex{p.idx}, warningStore{p.store}, &recorder{}, core.Options{Logger: out.logger()}))
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		assert.Len(t, out.with("the disk is a floppy"), 1)
	})
}

func TestASchedulerWhoseStoreHasNotAnsweredYetIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		store.set(func(_ string, call func() error) error {
			time.Sleep(4 * time.Second)
			return call()
		})
		s := newScheduler(t, p.idx, store, &recorder{}, core.Options{})
		stop := running(t, s)
		time.Sleep(3 * time.Second)
		require.ErrorIs(t, s.Health().Ready(), core.ErrNotReady)
		time.Sleep(10 * time.Second)
		require.NoError(t, s.Health().Ready())
		require.NoError(t, stop())
	})
}

// A backlog that is older than what short sweeps look at, read from a slow table while
// the index is away: sweeps are all that serves it.
func TestAnOldBacklogIsServedBySlowSweepsWhileTheIndexIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 5_000
		mem := claim.NewMemory(claim.MemoryOptions{})
		store := &hookedStore{Store: mem}
		store.set(func(op string, call func() error) error {
			if op == "waiting" {
				time.Sleep(200 * time.Millisecond)
			}
			return call()
		})
		old := core.CeilMilli(time.Now().Add(-time.Hour))
		for i := range tasks {
			require.NoError(t, mem.Insert(t.Context(), core.Call{ID: "c", Now: old}, []core.Task{{ID: core.ID(fmt.Sprint(i)), Due: old}}))
		}
		idx := &lossyIndex{TimeIndex: newNamedIndex()}
		idx.away.Store(true)
		var started atomic.Int32
		stop := running(t, newScheduler(t, idx, store, &recorder{}, core.Options{Slots: 500, Observer: core.Observer{
			Started: func(*core.Job, time.Duration) { started.Add(1) },
		}}))
		time.Sleep(15 * time.Second)
		assert.Equal(t, int32(tasks), started.Load())
		require.NoError(t, stop())
	})
}

func TestATickTellsOfItsSweep(t *testing.T) {
	p := newParts(t)
	s := newScheduler(t, p.idx, p.store, &recorder{}, core.Options{})
	_, err := s.Tick(t.Context(), time.Now())
	require.NoError(t, err)
	assert.False(t, s.Health().Swept.IsZero())
}

// stutterer fails each second take, of two looks where it doesn't.
type stutterer struct {
	core.TimeIndex
	looks atomic.Int64
}

func (x *stutterer) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if x.looks.Add(1)%3 == 0 {
		return nil, errAway
	}
	return x.TimeIndex.Due(ctx, now, limit)
}

func TestAnIndexThatStuttersDoesntMakeTheStoreBeSweptWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &stutterer{TimeIndex: newNamedIndex()}
		store := &hookedStore{Store: p.store}
		stop := running(t, newScheduler(t, idx, store, &recorder{}, core.Options{Poll: 20 * time.Millisecond}))
		time.Sleep(time.Minute)
		assert.Less(t, store.count("waiting"), 60*6, "in a minute")
		require.NoError(t, stop())
	})
}

package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// hungClock is a store whose clock doesn't answer.
type hungClock struct {
	core.Store
}

func (hungClock) Now(ctx context.Context) (time.Time, error) {
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

func TestCallersContextEndsItsWaitForAnothersReadingOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		prod, err := core.NewProducer(p.idx, hungClock{p.store}, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { assert.Error(t, prod.Schedule(t.Context(), core.Task{ID: "a", Due: time.Now()})) })
		time.Sleep(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.Error(t, prod.Schedule(ctx, core.Task{ID: "b", Due: time.Now()}))
		assert.Less(t, time.Since(start), time.Second)
		wg.Wait()
	})
}

// unsettleable is a store that never settles ids that start with "poison".
type unsettleable struct{ core.Store }

func (s unsettleable) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	for _, x := range list {
		if strings.HasPrefix(string(x.Grant.ID), "poison") {
			return errAway
		}
	}
	return s.Store.Settle(ctx, now, list)
}

// They are abandoned after a lease and run again, and again can't be recorded.
func TestResultsThatCanNeverBeRecordedDontStopClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		r := &recorder{}
		stop := running(t, newScheduler(t, p.idx, unsettleable{p.store}, r, core.Options{Slots: 10, Lease: 10 * time.Second}))
		for i := range 20 {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint("poison", i)), Due: time.Now()}))
		}
		time.Sleep(2 * time.Hour)
		start := time.Now()
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "good", Due: start}))
		time.Sleep(time.Minute)
		assert.Positive(t, r.get("good"))
		require.ErrorIs(t, stop(), errAway)
	})
}

// shuffled answers about other ids than those it was asked for.
type shuffled struct{ core.Store }

func (s shuffled) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	got, err := s.Store.Claim(ctx, ids, lease)
	for i := range got {
		got[i].ID = "other"
	}
	return got, err
}

func TestClaimAnsweredAboutOtherIdsIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		_, err := newScheduler(t, p.idx, shuffled{p.store}, &recorder{}, core.Options{}).Tick(t.Context(), time.Now().Add(time.Second))
		require.Error(t, err)
	})
}

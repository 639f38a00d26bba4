package index_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/index"
)

// onceDeaf is a remote that loses the reply of a take which took something, once in
// a while.
type onceDeaf struct {
	*remote
	mu    sync.Mutex
	since time.Time
	lost  int
}

func (x *onceDeaf) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	ids, next, err := x.remote.Take(ctx, now, until, limit)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(ids) > 0 && time.Since(x.since) > 20*time.Second {
		x.since = time.Now()
		x.lost += len(ids)
		return nil, time.Time{}, errAway
	}
	return ids, next, err
}

// A reply that was lost is no reason to go over to the backup, and what it had said is
// asked for at once.
func TestALostReplyOfATakeCostsLittleWithAFailoverToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := claim.NewMemory(claim.MemoryOptions{})
		primary := &onceDeaf{remote: newRemote(), since: time.Now()}
		quiet := slog.New(slog.DiscardHandler)
		var mu sync.Mutex
		var late []time.Duration
		handler := core.HandlerFunc(func(context.Context, *core.Job) error { return nil })
		observer := core.Observer{Started: func(_ *core.Job, d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			late = append(late, d)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		x, err := index.Failover(primary, heapindex.New())
		require.NoError(t, err)
		s, err := core.New(x, store, handler, core.Options{Logger: quiet, Observer: observer})
		require.NoError(t, err)
		all.Go(func() { assert.NoError(t, s.Run(ctx)) })
		producer, err := core.NewProducer(primary, store, core.ProducerOptions{Logger: quiet})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		const n = 10_000
		for i := range n {
			require.NoError(t, producer.Schedule(ctx, core.Task{ID: core.ID(fmt.Sprint("t", i)), Due: time.Now().Add(2 * time.Second)}))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		cancel()
		all.Wait()
		slices.Sort(late)
		require.Len(t, late, n)
		t.Logf("%d entries in lost replies; late p50 %v, p99 %v, max %v", primary.lost, late[n/2], late[n*99/100], late[n-1])
		require.Positive(t, primary.lost)
		assert.Less(t, late[n-1], 100*time.Millisecond, "the latest")
		require.NoError(t, s.Health().Index.LastErr, "no switch for a reply")
	})
}

package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// planned is a store whose grants tell the time that was planned, long past, and of a
// back-off nothing: as of a table whose due times are computed from a column that is
// only read.
type planned struct {
	*claim.Memory
	noAhead bool
}

func (s planned) NoAhead() bool { return s.noAhead }

func (s planned) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	got, err := s.Memory.Claim(ctx, ids, lease)
	for i := range got {
		if got[i].Verdict == core.Granted {
			got[i].Task.Due, got[i].NotBefore = time.UnixMilli(0).UTC(), time.Time{}
		}
	}
	return got, err
}

// book holds when each task may start at the earliest.
type book struct {
	mu    sync.Mutex
	from  map[core.ID]time.Time
	runs  map[core.ID]int
	early []string
}

func (b *book) started(id core.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Before(b.from[id]) {
		b.early = append(b.early, fmt.Sprintf("%s, run %d: %v", id, b.runs[id]+1, b.from[id].Sub(now)))
	}
	b.runs[id]++
}

func (b *book) again(id core.ID, from time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.from[id] = from
}

// Whatever a store's grants can tell, whatever the index loses, and whoever finds a row
// first: a first run waits for its due time and each other one for its back-off.
func TestNothingStartsEarly(t *testing.T) {
	for _, c := range []struct {
		name  string
		store func() core.Claimer
		lossy bool // the index swallows what it is told, now and then
	}{
		{"a row that tells its time", func() core.Claimer { return claim.NewMemory(claim.MemoryOptions{}) }, true},
		{"a grant that tells what was planned", func() core.Claimer { return planned{claim.NewMemory(claim.MemoryOptions{}), true} }, true},
		{"a row that looks due, with the index alone to tell", func() core.Claimer { return &stepStore{} }, false},
	} {
		for _, ahead := range []time.Duration{0, 7 * time.Second, -1} {
			t.Run(fmt.Sprintf("%s, Ahead %v", c.name, ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := runEarly(t, c.store(), c.lossy, ahead)
					assert.Empty(t, b.early)
				})
			})
		}
	}
}

// The rule is worth its price: with the same store and claims ahead, back-offs are cut.
func TestAStoreThatCannotTellBackOffsNeedsNoAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := runEarly(t, planned{claim.NewMemory(claim.MemoryOptions{}), false}, true, 7*time.Second)
		assert.NotEmpty(t, b.early)
	})
}

// runEarly has three processes run tasks that fail, are put off and given back.
func runEarly(t *testing.T, store core.Claimer, lossy bool, ahead time.Duration) *book {
	b := &book{from: map[core.ID]time.Time{}, runs: map[core.ID]int{}}
	draw := rand.New(rand.NewPCG(1, 2))
	h := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		id := job.Task.ID
		b.started(id)
		b.mu.Lock()
		n, rest := b.runs[id], time.Duration(draw.IntN(8_000)+10)*time.Millisecond
		b.mu.Unlock()
		time.Sleep(rest / 100)
		now := time.Now()
		switch {
		case n >= 6:
			if s, ok := store.(*stepStore); ok {
				s.do(id)
			}
			return nil
		case n%3 == 0:
			b.again(id, now.Add(100*time.Millisecond)) // the least pause of an unknown kind
			return core.ErrUnknownKind
		case n%3 == 1:
			b.again(id, now.Add(rest))
			return core.RetryAt(now.Add(rest), errors.New("no luck"))
		}
		b.again(id, now.Add(3*time.Second))
		return errors.New("no luck")
	})
	idx := lossyRestorer{&lossyIndex{TimeIndex: heapindex.New()}}
	for range 3 {
		running(t, newScheduler(t, idx, store, h, core.Options{Ahead: ahead, Backoff: func(int) time.Duration { return 3 * time.Second }}))
	}
	time.Sleep(3 * time.Second)
	const n = 300
	plan := rand.New(rand.NewPCG(3, 4)) // this goroutine's own
	prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	for i := range n {
		id, due := core.ID(fmt.Sprint("n", i)), time.Now().Add(time.Duration(plan.IntN(15_000))*time.Millisecond)
		b.again(id, due)
		if s, ok := store.(*stepStore); ok {
			s.put(due, id)
			track(t, idx, store, due, id)
			continue
		}
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: id, Due: due}))
	}
	for i := range 300 {
		idx.swallow.Store(lossy && i%5 == 0)
		time.Sleep(time.Second)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		require.GreaterOrEqual(t, b.runs[core.ID(fmt.Sprint("n", i))], 6)
	}
	return b
}

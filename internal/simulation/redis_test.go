package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

var errReconnect = errors.New("simulation: connection to the index lost")

// redis is the index that all processes share: a heap that can be emptied, set back
// to what it was some time ago and robbed of entries.
type redis struct {
	mu   sync.Mutex
	heap *heapindex.Index
	n    int           // of the heap
	cut  chan struct{} // closed when heap is another one
	old  []core.Entry  // a snapshot
}

func newRedis() *redis { return &redis{heap: heapindex.New(), cut: make(chan struct{})} }

func (r *redis) get() (*heapindex.Index, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heap, r.cut
}

func (r *redis) entries() []core.Entry {
	heap, _ := r.get()
	all, err := heap.Due(context.Background(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 1<<20)
	if err != nil {
		panic(err)
	}
	return all
}

// replace puts a new heap with these entries in the old one's place.
func (r *redis) replace(entries []core.Entry) {
	heap := heapindex.New()
	if err := heap.Add(context.Background(), entries); err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heap = heap
	r.n++
	close(r.cut)
	r.cut = make(chan struct{})
}

func (r *redis) snapshot() {
	all := r.entries()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.old = all
}

// rob takes out a share of the entries.
func (r *redis) rob(rnd *rand.Rand, share float64) {
	heap, _ := r.get()
	for _, e := range r.entries() {
		if rnd.Float64() < share {
			_ = heap.Remove(context.Background(), []core.Entry{e}) // its only error is the context's
		}
	}
}

func (r *redis) Add(ctx context.Context, entries []core.Entry) error {
	heap, _ := r.get()
	return heap.Add(ctx, entries)
}

func (r *redis) AddMissing(ctx context.Context, entries []core.Entry) error {
	heap, _ := r.get()
	return heap.AddMissing(ctx, entries)
}

func (r *redis) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	heap, _ := r.get()
	return heap.Due(ctx, now, limit)
}

func (r *redis) Move(ctx context.Context, moves []core.Move) error {
	heap, _ := r.get()
	return heap.Move(ctx, moves)
}

func (r *redis) Remove(ctx context.Context, entries []core.Entry) error {
	heap, _ := r.get()
	return heap.Remove(ctx, entries)
}

func (r *redis) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	heap, _ := r.get()
	return heap.Take(ctx, now, until, limit)
}

func (r *redis) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	heap, _ := r.get()
	return heap.List(ctx, after, before, limit)
}

// Generation implements core.Detector.
func (r *redis) Generation(context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strconv.Itoa(r.n), nil
}

// Watch ends with an error when the heap is replaced.
func (r *redis) Watch(ctx context.Context, notify func()) error {
	heap, cut := r.get()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-cut:
			cancel(errReconnect)
		case <-ctx.Done():
		}
	})
	if err := heap.Watch(ctx, notify); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

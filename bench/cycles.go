package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

const (
	cycleBatch      = 500
	cycleGoroutines = 2
	grace           = 2 * time.Second // core's: a lease is left alone so long after its end
)

// cycles puts n due tasks, numbered from.., before a queue's pending ones, and takes
// the time for take, claim, settle and remove, of 500 a call by two goroutines, as
// a scheduler does it.
func cycles(ctx context.Context, m *machine, s system, q *dueclaimQueue, from, n int) (d drained, err error) {
	if err := fill(ctx, q, from, n, time.Now().Add(-time.Second)); err != nil {
		return d, err
	}
	if err := q.prepare(ctx); err != nil {
		return d, err
	}
	taker, ok := q.index.(core.Taker)
	if !ok {
		return d, errors.New("the index is no Taker")
	}
	var done atomic.Int64
	before, began := m.cpu(s), time.Now()
	err = inBatches(ctx, cycleGoroutines, n, cycleBatch, func(ctx context.Context, first, end int) error {
		k, err := cycle(ctx, taker, q, end-first)
		done.Add(int64(k))
		return err
	})
	d = drained{n: n, took: time.Since(began), cpu: m.cpu(s).sub(before)}
	if err == nil && done.Load() != int64(n) {
		err = fmt.Errorf("%d of %d tasks were claimed", done.Load(), n)
	}
	return d, err
}

// cycle handles one batch of at most limit tasks, and returns how many it granted
// and settled.
func cycle(ctx context.Context, taker core.Taker, q *dueclaimQueue, limit int) (int, error) {
	now := core.FloorMilli(time.Now())
	until := now.Add(30 * time.Second)
	ids, _, err := taker.Take(ctx, now, until.Add(grace), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	claimed, err := q.store.Claim(ctx, ids, core.Lease{Holder: fmt.Sprintf("bench-%d", rand.Uint64()), Now: now.Add(-grace), DueBy: now, Until: until})
	if err != nil {
		return 0, err
	}
	settlements := make([]core.Settlement, 0, len(claimed))
	entries := make([]core.Entry, 0, len(claimed))
	for _, c := range claimed {
		if c.Verdict != core.Granted || len(c.Task.Payload) == 0 {
			return 0, fmt.Errorf("%s: verdict %v, %d bytes of payload", c.ID, c.Verdict, len(c.Task.Payload))
		}
		settlements = append(settlements, core.Settlement{Grant: c.Grant, Outcome: core.Done})
		entries = append(entries, core.Entry{ID: c.ID, Due: until.Add(grace)})
	}
	if err := q.store.Settle(ctx, now, settlements); err != nil {
		return 0, err
	}
	return len(claimed), q.index.Remove(ctx, entries)
}

// churn feeds an index with entries of random due times. Its ids are made
// beforehand, so that they are not counted as the index's.
type churn struct {
	ids  []core.ID
	next int
	now  int64 // the due time, in milliseconds, of what is taken next, about
	span int64
	rng  *rand.Rand
}

func newChurn(n, batch int) *churn {
	c := &churn{ids: make([]core.ID, n+batch), span: int64(n) * 10, rng: rand.New(rand.NewPCG(1, 2))}
	for i := range c.ids {
		c.ids[i] = taskID(i)
	}
	return c
}

func (c *churn) fill(ctx context.Context, idx *heapindex.Index, n int) error {
	const step = 1000
	for from := 0; from < n; from += step {
		if err := idx.Add(ctx, c.entries(c.ids[from:min(n, from+step)])); err != nil {
			return err
		}
	}
	c.next = n
	return nil
}

func (c *churn) entries(ids []core.ID) []core.Entry {
	list := make([]core.Entry, len(ids))
	for i, id := range ids {
		list[i] = core.Entry{ID: id, Due: time.UnixMilli(c.now + c.rng.Int64N(c.span)).UTC()}
	}
	return list
}

// cycle takes the earliest ones, removes them, and adds as many later ones.
func (c *churn) cycle(ctx context.Context, idx *heapindex.Index, batch int) error {
	end := time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	taken, next, err := idx.Take(ctx, end.Add(-time.Hour), end, batch)
	if err != nil {
		return err
	}
	if len(taken) != batch {
		return fmt.Errorf("took %d of %d", len(taken), batch)
	}
	gone := make([]core.Entry, len(taken))
	for i, id := range taken {
		gone[i] = core.Entry{ID: id, Due: end}
	}
	if err := idx.Remove(ctx, gone); err != nil {
		return err
	}
	c.now = next.UnixMilli()
	return idx.Add(ctx, c.entries(taken))
}

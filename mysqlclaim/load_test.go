package mysqlclaim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// crowd is a queue under everything at once.
type crowd struct {
	start       time.Time
	s           *Store
	deadlocks   atomic.Int64
	timeouts    atomic.Int64
	calls       atomic.Int64
	mu          sync.Mutex
	completions map[core.ID]int
	outOfOrder  int
	tokens      map[core.ID]int64
}

// insist repeats a call as core does while its outcome is unknown or rows are
// busy, and counts why.
func (c *crowd) insist(ctx context.Context, call func() error) error {
	for try := 0; ; try++ {
		c.calls.Add(1)
		err := call()
		switch number(err) {
		case errDeadlock:
			c.deadlocks.Add(1)
		case errLockTimeout:
			c.timeouts.Add(1)
		default:
			if !errors.Is(err, core.ErrBusy) {
				return err
			}
		}
		if try > 100 {
			return err
		}
		select { // back off, as core does
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		}
	}
}

func (c *crowd) produce(ctx context.Context, who, batches, each int) error {
	for n := range batches {
		list := someTasks(fmt.Sprintf("%d-%d", n, who), each)
		rand.Shuffle(each, func(i, j int) { list[i], list[j] = list[j], list[i] })
		call := core.Call{ID: fmt.Sprintf("c-%d-%d", n, who), Now: base}
		if err := c.insist(ctx, func() error { return c.s.Insert(ctx, call, list) }); err != nil {
			return err
		}
	}
	return nil
}

// work claims what waits, a random part of it twice to get in the others' way,
// extends, and settles most as done and some as retries.
func (c *crowd) work(ctx context.Context, who int) error {
	for n := 0; ctx.Err() == nil; n++ {
		entries, err := c.s.Waiting(ctx, base, core.Entry{}, at(1), 300)
		if err != nil {
			return err
		}
		rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		var ids []core.ID
		for _, e := range entries[:min(len(entries), 100)] {
			ids = append(ids, e.ID)
		}
		var got []core.Claimed
		lease := leaseOf(fmt.Sprintf("h-%d-%d", who, n), base)
		if err := c.insist(ctx, func() (err error) { got, err = c.s.Claim(ctx, ids, lease); return err }); err != nil {
			return err
		}
		if err := c.finish(ctx, got); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) finish(ctx context.Context, got []core.Claimed) error {
	var grants []core.Grant
	var settlements []core.Settlement
	for _, g := range got {
		if g.Verdict != core.Granted {
			continue
		}
		grants = append(grants, g.Grant)
		st := core.Settlement{Grant: g.Grant, Outcome: core.Done}
		if g.Attempt == 1 && rand.IntN(5) == 0 {
			st = core.Settlement{Grant: g.Grant, Outcome: core.Retry, Due: base, Err: "again"}
		}
		settlements = append(settlements, st)
	}
	if err := c.insist(ctx, func() error { return c.s.Extend(ctx, grants, at(90_000)) }); err != nil {
		return err
	}
	c.record(settlements) // before, since a retry is somebody else's at once
	return c.settle(ctx, settlements)
}

// settle repeats what was busy, and all of it where the outcome is unknown; then
// a lost lease may mean a settlement that had taken effect. So it may for a retry,
// which somebody else is granted at once: when others of the batch were locked, the
// read-back finds the new holder.
func (c *crowd) settle(ctx context.Context, left []core.Settlement) error {
	unknown := false
	for len(left) > 0 {
		err := c.s.Settle(ctx, at(c.elapsed()), left)
		c.calls.Add(1)
		var batch *core.BatchError
		switch {
		case err == nil:
			return nil
		case number(err) == errDeadlock:
			c.deadlocks.Add(1)
			unknown = true
			continue
		case !errors.As(err, &batch):
			return err
		}
		var again []core.Settlement
		for _, item := range batch.Items {
			if errors.Is(item.Err, core.ErrBusy) {
				again = append(again, left[item.Index])
			} else if maybe := unknown || left[item.Index].Outcome == core.Retry; !maybe || !errors.Is(item.Err, core.ErrLeaseLost) {
				return fmt.Errorf("settle as %s: %w", left[item.Index].Outcome, item)
			}
		}
		left = again
	}
	return nil
}

func (c *crowd) record(settlements []core.Settlement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range settlements {
		if st.Grant.Token <= c.tokens[st.Grant.ID] {
			c.outOfOrder++
		}
		c.tokens[st.Grant.ID] = st.Grant.Token
		if st.Outcome == core.Done {
			c.completions[st.Grant.ID]++
		}
	}
}

// keep is how many milliseconds finished rows stay. A Settle that passed over some
// locked rows reads all of them back: of one that was purged in between it could
// only say that it is nobody's any more.
const keep = 500

// elapsed returns the milliseconds since the start.
func (c *crowd) elapsed() int { return int(time.Since(c.start).Milliseconds()) }

func (c *crowd) purge(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.insist(ctx, func() error { _, err := c.s.Purge(ctx, at(c.elapsed()-keep), 500); return err }); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond) // no purge runs without a pause
	}
	return nil
}

// The scenario of rails/solid_queue issues 162, 229, 240, 531 and 609: producers,
// claimers and a purge lock one another's index ranges.
func TestProducersClaimersAndPurgersDontDeadlock(t *testing.T) {
	const producers, claimers, batches, each = 8, 8, 5, 100
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		c := &crowd{s: s, start: time.Now(), completions: map[core.ID]int{}, tokens: map[core.ID]int64{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var made, rest sync.WaitGroup
		var failed atomic.Pointer[error]
		report := func(err error) {
			if err != nil && ctx.Err() == nil {
				failed.Store(&err)
			}
		}
		start := time.Now()
		for who := range producers {
			made.Go(func() { report(c.produce(ctx, who, batches, each)) })
		}
		for who := range claimers {
			rest.Go(func() { report(c.work(ctx, who)) })
		}
		for range 2 {
			rest.Go(func() { report(c.purge(ctx)) })
		}
		made.Wait()
		all := func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.completions) == producers*batches*each || failed.Load() != nil
		}
		require.Eventually(t, all, 2*time.Minute, 20*time.Millisecond)
		took := time.Since(start)
		cancel()
		rest.Wait()
		if err := failed.Load(); err != nil {
			require.NoError(t, *err)
		}
		for id, n := range c.completions {
			require.Equal(t, 1, n, "completions of %s", id)
		}
		assert.Zero(t, c.outOfOrder, "tokens that didn't rise")
		t.Logf("%d tasks in %s, %d calls, %d deadlocks, %d lock wait time-outs",
			len(c.completions), took.Round(time.Millisecond), c.calls.Load(), c.deadlocks.Load(), c.timeouts.Load())
		assert.Zero(t, c.timeouts.Load())
		assert.LessOrEqual(t, c.deadlocks.Load(), c.calls.Load()/100, "deadlocks among %d calls", c.calls.Load())
	})
}

// Producers of the same ids, as replicas with the same cron line are, in
// different orders.
func TestProducersOfTheSameIDsAgreeOnOne(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, isolation := range isolations {
			s := newStore(t, open(t, b.database(t), b.options("isolation="+isolation)), Options{})
			c := &crowd{s: s}
			list := someTasks("n", 100)
			for round := range 5 {
				var made atomic.Int64
				var wg sync.WaitGroup
				for who := range 8 {
					mine := append([]core.Task(nil), list...)
					rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					wg.Go(func() {
						err := c.insist(t.Context(), func() error {
							return s.Insert(t.Context(), core.Call{ID: fmt.Sprintf("c-%d-%d", round, who), Now: base}, mine)
						})
						var batch *core.BatchError
						if errors.As(err, &batch) {
							made.Add(int64(len(mine) - len(batch.Items)))
						} else if assert.NoError(t, err) {
							made.Add(int64(len(mine)))
						}
					})
				}
				wg.Wait()
				assert.Equal(t, int64(len(list)), made.Load(), "each id was made once in round %d", round)
				_, err := s.Cancel(t.Context(), core.Call{Now: base}, idsOf(list)) // so that the next round replaces them
				require.NoError(t, err)
			}
			t.Logf("%s: %d calls, %d deadlocks", isolation, c.calls.Load(), c.deadlocks.Load())
			// Unsorted, one call in three to two loses one.
			assert.LessOrEqual(t, c.deadlocks.Load(), c.calls.Load()/20, "deadlocks among %d calls", c.calls.Load())
		}
	})
}

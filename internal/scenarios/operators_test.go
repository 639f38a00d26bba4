package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// https://github.com/taskforcesh/bullmq/issues/64: a delayed job that was completed
// by hand ran later all the same, as its entry stayed and dispatch didn't look at
// its state. Right: tasks that an operator cancelled or completed in the database
// alone never run, and their entries go.
func TestR18WhatAnOperatorEndedInTheDatabaseNeverRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		n := fleet.Rounds(300, 1000)
		due := time.Now().Add(1500 * time.Millisecond)
		b.Schedule(t, "t", "job", n, func(int) time.Time { return due })
		more := b.Schedule(t, "z", "job", 10, func(int) time.Time { return due })
		require.EqualValues(t, n+10, b.Redis.ZCard(t.Context(), fleet.DueKey).Val())
		// As the package comments tell operators to.
		for i, status := range []string{"cancelled", "done"} {
			b.Exec(t, fmt.Sprintf("UPDATE %s SET status = '%s', due = NULL, lease_until = 0, finished_at = %d "+
				"WHERE queue = 'default' AND id %s 't-%04d' AND id < 'u' AND status = 'pending'",
				claim.DefaultTable, status, time.Now().UnixMilli(), []string{"<", ">="}[i], n/2))
		}
		require.Equal(t, n/2, b.Count(t, claim.Cancelled))
		require.Equal(t, n-n/2, b.Count(t, claim.DoneState))
		j := newJournal()
		w := j.start(t, "w", b.Index, b.Store, done, options(time.Minute))
		fleet.Until(t, 20*time.Second, "the others ran and the entries are gone", func() bool {
			return j.completed(more) == 10 && b.Redis.ZCard(t.Context(), fleet.DueKey).Val() == 0
		})
		w.stop()
		assert.Equal(t, 10, j.total(), "runs")
		j.wantOnce(t, more)
	})
}

// loser loses the reply of each operation's first call; the effect stays.
type loser struct{ insert, cancel, settle atomic.Bool }

var errLostReply = errors.New("connection lost while the reply was awaited")

func losing(lost *atomic.Bool) error {
	if lost.CompareAndSwap(false, true) {
		return errLostReply
	}
	return nil
}

func (l *loser) around(h *hooked) *hooked {
	h.afterInsert = func() error { return losing(&l.insert) }
	h.afterCancel = func() error { return losing(&l.cancel) }
	h.afterSettle = func([]core.Settlement) error { return losing(&l.settle) }
	return h
}

func (l *loser) again() {
	l.insert.Store(false)
	l.cancel.Store(false)
	l.settle.Store(false)
}

// https://github.com/hibiken/asynq/issues/275 (and #369): a new task was refused as
// a duplicate after the old one had been deleted, or a duplicate was accepted, as the
// lock of its name lived apart from it. Right: an id is taken exactly as long as a
// task of it is live, whatever replies get lost: success always leaves a pending
// row, a live one is ErrExists.
func TestR58AnIDIsFreeAgainWhenItsTaskIsOver(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		var l loser
		store := l.around(hook(b.Parts))
		p := newProducer(t, b.Index, store, core.ProducerOptions{})
		ids := []core.ID{"x"}
		far := core.Task{ID: "x", Kind: "job", Due: time.Now().Add(time.Hour)}
		token := int64(0)
		wantPending := func() {
			t.Helper()
			r := b.Rows(t)["x"]
			require.Equal(t, claim.Pending, r.Status)
			require.Greater(t, r.Token, token, "the fence rises")
			token = r.Token
			require.ErrorIs(t, p.Schedule(t.Context(), far), core.ErrExists, "a live one is refused")
		}
		require.NoError(t, p.Schedule(t.Context(), far))
		require.True(t, l.insert.Load(), "a reply was lost")
		wantPending()

		l.again()
		fates, err := p.Cancel(t.Context(), "x")
		require.NoError(t, err)
		require.Equal(t, []core.Fate{core.Cancelled}, fates)
		require.True(t, l.cancel.Load(), "a reply was lost")
		l.again()
		near := far
		near.Due = time.Now()
		require.NoError(t, p.Schedule(t.Context(), near), "cancelled: free")
		wantPending()

		l.again()
		j := newJournal()
		w := j.start(t, "w", b.Index, store, done, options(time.Minute))
		fleet.Until(t, 20*time.Second, "it is done", func() bool { return j.completed(ids) == 1 })
		w.stop()
		j.wantOnce(t, ids)
		require.True(t, l.settle.Load(), "a reply was lost")
		l.again()
		require.NoError(t, p.Schedule(t.Context(), far), "done: free")
		require.True(t, l.insert.Load(), "a reply was lost")
		wantPending()
	})
}

// https://github.com/apache/rocketmq/issues/6984 (and #11048): one failure in a batch
// had the whole batch enqueued again. Right: each item has its own result, the
// others are stored once whatever the caller repeats; and of a batch of claims one
// poisoned row holds up nobody.
func TestR33OneBadItemOfABatchHarmsNoOther(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const n = 100
		list := fleet.Tasks("t", "job", n, now)
		require.NoError(t, b.Producer.Schedule(t.Context(), list[50])) // so the 51st of the batch is there already
		var l loser
		p := newProducer(t, b.Index, l.around(hook(b.Parts)), core.ProducerOptions{})
		call, err := p.NewCall(t.Context())
		require.NoError(t, err)
		for range 3 { // the reply to the first is lost; then the caller repeats what it got an answer to
			err = p.ScheduleCall(t.Context(), call, list...)
			var items *core.BatchError
			require.ErrorAs(t, err, &items)
			require.Len(t, items.Items, 1)
			require.Equal(t, 50, items.Items[0].Index)
			require.ErrorIs(t, items.Items[0].Err, core.ErrExists)
		}
		require.Equal(t, n, b.Count(t, claim.Pending))
		require.EqualValues(t, n, b.Redis.ZCard(t.Context(), fleet.DueKey).Val())

		// A row that fails every statement which touches it.
		switch b.At.Store {
		case fleet.MariaDB:
			b.Exec(t, "CREATE TRIGGER poison BEFORE UPDATE ON "+claim.DefaultTable+" FOR EACH ROW "+
				"BEGIN IF NEW.id = 't-0050' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poison'; END IF; END")
		case fleet.Postgres:
			b.Exec(t, "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS "+
				"$$ BEGIN IF NEW.id = 't-0050' THEN RAISE EXCEPTION 'poison'; END IF; RETURN NEW; END $$")
			b.Exec(t, "CREATE TRIGGER poison BEFORE UPDATE ON "+claim.DefaultTable+" FOR EACH ROW EXECUTE FUNCTION poison()")
		}
		j := newJournal()
		began := time.Now()
		w := j.start(t, "w", b.Index, b.Store, done, options(time.Minute))
		ids := fleet.IDs(append(list[:50:50], list[51:]...))
		fleet.Until(t, 60*time.Second, "the others are done", func() bool { return j.completed(ids) == n-1 })
		took := time.Since(began)
		w.stop()
		j.wantOnce(t, ids)
		assert.Empty(t, j.of("t-0050"))
		assert.Equal(t, claim.Pending, b.Rows(t)["t-0050"].Status)
		figure(t, "%d tasks beside one that no statement can claim: done after %.1f s", n-1, took.Seconds())
	})
}

// https://github.com/sidekiq/sidekiq/pull/1495: two pollers read the same entry of the
// schedule and both enqueued it. Right: of eight schedulers that see the same
// entries, on an index with 20 ms of latency that can't hand them out atomically,
// one wins each.
func TestR25EightPollersOfTheSameEntriesRunEachOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		n := fleet.Rounds(1000, 5000)
		ids := b.Schedule(t, "t", "job", n, now)
		j := newJournal()
		var granted, refused atomic.Int64
		idx := slowIndex{b.Index, 20 * time.Millisecond}
		// A barrier: nobody claims before each has something to claim.
		const pollers = 8
		var arrived atomic.Int32
		open := make(chan struct{})
		var workers []*worker
		for i := range pollers {
			store := hook(b.Parts)
			var been atomic.Bool
			store.beforeClaim = func(ctx context.Context, _ []core.ID, _ core.Lease) error {
				if been.CompareAndSwap(false, true) && arrived.Add(1) == pollers {
					close(open)
				}
				select {
				case <-open:
				case <-ctx.Done():
				}
				return nil
			}
			store.afterClaim = func(claimed []core.Claimed) error {
				for _, c := range claimed {
					if c.Verdict == core.Granted {
						granted.Add(1)
					} else {
						refused.Add(1)
					}
				}
				return nil
			}
			opt := options(time.Minute)
			opt.NearSweep = time.Hour // the index alone
			workers = append(workers, j.start(t, fmt.Sprint("w", i), idx, store, done, opt))
		}
		fleet.Until(t, 60*time.Second, "all are done", func() bool { return j.completed(ids) == n })
		for _, w := range workers {
			w.stop()
		}
		j.wantOnce(t, ids)
		assert.EqualValues(t, n, granted.Load(), "winners")
		assert.Positive(t, refused.Load(), "claims of what somebody else had won")
		for id, r := range b.Rows(t) {
			require.Equal(t, 1, r.Attempts, id)
		}
		figure(t, "%d schedulers on the same %d entries: %d grants, %d answers of no", pollers, n, granted.Load(), refused.Load())
	})
}

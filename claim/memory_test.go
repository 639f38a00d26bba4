package claim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func call(id string) core.Call { return core.Call{ID: id, Now: noon} }

func lease(holder string, now, until int) core.Lease {
	return core.Lease{Holder: holder, Now: at(now), DueBy: at(now), Until: at(until)}
}

func insert(t *testing.T, m *Memory, name string, due int, ids ...core.ID) {
	t.Helper()
	tasks := make([]core.Task, len(ids))
	for i, id := range ids {
		tasks[i] = core.Task{ID: id, Kind: "k", Payload: []byte("p"), Due: at(due)}
	}
	require.NoError(t, m.Insert(t.Context(), call(name), tasks))
}

func claimOne(t *testing.T, m *Memory, id core.ID, l core.Lease) core.Claimed {
	t.Helper()
	claimed, err := m.Claim(t.Context(), []core.ID{id}, l)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	return claimed[0]
}

func settleOne(t *testing.T, m *Memory, s core.Settlement) error {
	t.Helper()
	return m.Settle(t.Context(), at(100), []core.Settlement{s})
}

func TestMemoryTokenRisesWithEveryGrantAlsoAfterDeletion(t *testing.T) {
	t.Attr("dueclaim.backend", "store:memory")
	for _, deleteFinished := range []bool{false, true} {
		m := NewMemory(MemoryOptions{DeleteFinished: deleteFinished})
		last := noon.UnixMilli()
		for i := range 3 {
			now := noon.Add(time.Duration(i) * time.Millisecond)
			require.NoError(t, m.Insert(t.Context(), core.Call{ID: fmt.Sprint(i), Now: now}, []core.Task{{ID: "a", Due: at(0)}}))
			c := claimOne(t, m, "a", lease(fmt.Sprint("h", i), 1, 10))
			require.Equal(t, core.Granted, c.Verdict)
			require.Greater(t, c.Grant.Token, last)
			last = c.Grant.Token
			require.NoError(t, settleOne(t, m, core.Settlement{Grant: c.Grant, Outcome: core.Done}))
			_, kept := m.Task("a")
			require.Equal(t, !deleteFinished, kept)
		}
	}
}

func TestMemoryRepeatOfClaimFindsItsEarlierSuccess(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "a")
	first := claimOne(t, m, "a", lease("h", 1, 10))
	again := claimOne(t, m, "a", lease("h", 500, 600))
	assert.Equal(t, first, again, "as it was stored, though the lease has ended")
	assert.Equal(t, core.Held, claimOne(t, m, "a", lease("other", 10, 20)).Verdict, "a lease is live to its last millisecond")
	taken := claimOne(t, m, "a", lease("other", 11, 20))
	assert.Equal(t, core.Granted, taken.Verdict)
	assert.Equal(t, 2, taken.Attempt)
	assert.Equal(t, 1, taken.Crashes)
	assert.Equal(t, core.Held, claimOne(t, m, "a", lease("h", 12, 30)).Verdict)
	assert.ErrorIs(t, settleOne(t, m, core.Settlement{Grant: first.Grant, Outcome: core.Done}), core.ErrLeaseLost)
}

func TestMemoryReleaseDoesNotCountTheAttempt(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "a")
	c := claimOne(t, m, "a", lease("h", 1, 10))
	release := core.Settlement{Grant: c.Grant, Outcome: core.Released, Due: at(5)}
	require.NoError(t, settleOne(t, m, release))
	require.NoError(t, settleOne(t, m, release), "a repeat is a success that changes nothing")
	got := claimOne(t, m, "a", lease("h2", 4, 10))
	assert.Equal(t, core.NotDue, got.Verdict)
	assert.Equal(t, at(5), got.At)
	got = claimOne(t, m, "a", lease("h2", 5, 10))
	assert.Equal(t, 1, got.Attempt)
	assert.Equal(t, at(0), got.Task.Due, "a release leaves the planned time")
	require.NoError(t, settleOne(t, m, core.Settlement{Grant: got.Grant, Outcome: core.Retry, Due: at(7), Err: "boom"}))
	task, _ := m.Task("a")
	assert.Equal(t, "boom", task.LastError)
	got = claimOne(t, m, "a", lease("h3", 7, 10))
	assert.Equal(t, 2, got.Attempt)
	assert.Equal(t, at(7), got.Task.Due)
}

func TestMemoryInsertRepeatIsRecognisedAndLiveIdsAreRefused(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c1", 0, "a", "b")
	insert(t, m, "c1", 0, "a", "b")
	err := m.Insert(t.Context(), call("c2"), []core.Task{{ID: "n", Due: at(0)}, {ID: "b", Due: at(0)}})
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Equal(t, []core.ItemError{{Index: 1, ID: "b", Err: core.ErrExists}}, batch.Items)
	_, ok := m.Task("n")
	require.True(t, ok, "all others took effect")

	c := claimOne(t, m, "a", lease("h", 1, 10))
	require.NoError(t, settleOne(t, m, core.Settlement{Grant: c.Grant, Outcome: core.Done}))
	insert(t, m, "c1", 0, "a")
	task, _ := m.Task("a")
	require.Equal(t, DoneState, task.Status, "a late repeat doesn't run the task again")
	insert(t, m, "c3", 0, "a")
	task, _ = m.Task("a")
	require.Equal(t, Pending, task.Status)
	require.Greater(t, task.Token, c.Grant.Token)
}

func TestMemoryCancelTellsTheFateAndARepeatTellsTheSame(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "pending", "held", "last-ms", "lapsed", "done", "dead")
	claimOne(t, m, "last-ms", lease("h", 1, 10))
	held := claimOne(t, m, "held", lease("h", 1, 100))
	claimOne(t, m, "lapsed", lease("h", 1, 5))
	require.NoError(t, settleOne(t, m, core.Settlement{Grant: claimOne(t, m, "done", lease("h", 1, 9)).Grant, Outcome: core.Done}))
	require.NoError(t, settleOne(t, m, core.Settlement{Grant: claimOne(t, m, "dead", lease("h", 1, 9)).Grant, Outcome: core.DeadLetter}))
	for range 2 {
		fates, err := m.Cancel(t.Context(), core.Call{Now: at(10)}, []core.ID{"pending", "held", "last-ms", "lapsed", "done", "dead", "none"})
		require.NoError(t, err)
		require.Equal(t, []core.Fate{core.Cancelled, core.WasRunning, core.WasRunning, core.Cancelled, core.Finished, core.Finished, core.Unknown}, fates)
	}
	require.ErrorIs(t, m.Extend(t.Context(), []core.Grant{held.Grant}, at(200)), core.ErrLeaseLost)
	require.ErrorIs(t, settleOne(t, m, core.Settlement{Grant: held.Grant, Outcome: core.Done}), core.ErrLeaseLost)

	n, err := m.Purge(t.Context(), at(1000), 2)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = m.Purge(t.Context(), at(1000), 100)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	_, ok := m.Task("dead")
	require.True(t, ok, "dead tasks stay")
}

func TestMemoryRescheduleComparesFrom(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "a", "b", "run")
	claimOne(t, m, "run", lease("h", 1, 10))
	err := m.Reschedule(t.Context(), core.Call{Now: noon}, []core.Move{
		{ID: "a", From: at(0), To: at(9)}, {ID: "b", From: at(1), To: at(9)}, {ID: "run", To: at(9)}, {ID: "none", To: at(9)},
	})
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Equal(t, []core.ItemError{
		{Index: 1, ID: "b", Err: core.ErrMoved}, {Index: 2, ID: "run", Err: core.ErrNotPending}, {Index: 3, ID: "none", Err: core.ErrNotPending},
	}, batch.Items)
	require.NoError(t, m.Reschedule(t.Context(), core.Call{Now: noon}, []core.Move{{ID: "a", From: at(0), To: at(9)}}), "already there")
	require.NoError(t, m.Reschedule(t.Context(), core.Call{Now: noon}, []core.Move{{ID: "b", To: at(3)}}), "zero From: whatever it is")
}

func TestMemoryExtendNeverShortens(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "a")
	c := claimOne(t, m, "a", lease("h", 1, 10))
	for _, step := range []struct{ until, want int }{{20, 20}, {5, 20}, {30, 30}} {
		require.NoError(t, m.Extend(t.Context(), []core.Grant{c.Grant}, at(step.until)))
		task, _ := m.Task("a")
		require.Equal(t, at(step.want).UnixMilli(), task.LeaseUntil)
	}
	wrong := c.Grant
	wrong.Token++
	require.ErrorIs(t, m.Extend(t.Context(), []core.Grant{wrong}, at(40)), core.ErrLeaseLost)
}

func TestMemoryOwnsItsPayloads(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	payload, meta := []byte("payload"), []byte("meta")
	require.NoError(t, m.Insert(t.Context(), call("c"), []core.Task{{ID: "a", Payload: payload, Meta: meta, Due: at(0)}}))
	payload[0], meta[0] = '!', '!'
	for i := range 2 {
		c := claimOne(t, m, "a", lease("h", 1, 10))
		require.Equal(t, "payload", string(c.Task.Payload), "look %d", i)
		require.Equal(t, "meta", string(c.Task.Meta))
		c.Task.Payload[0], c.Task.Meta[0] = '?', '?'
		task, _ := m.Task("a")
		require.Equal(t, "payload", string(task.Payload))
		task.Payload[0] = '#'
	}
}

func TestMemoryDoesNothingWhenContextIsDone(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	insert(t, m, "c", 0, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before, _ := m.Task("a")
	require.ErrorIs(t, m.Insert(ctx, call("d"), []core.Task{{ID: "b", Due: at(0)}}), context.Canceled)
	_, err := m.Claim(ctx, []core.ID{"a"}, lease("h", 1, 2))
	require.ErrorIs(t, err, context.Canceled)
	_, err = m.Cancel(ctx, core.Call{Now: noon}, []core.ID{"a"})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, m.Reschedule(ctx, core.Call{Now: noon}, []core.Move{{ID: "a", To: at(5)}}), context.Canceled)
	_, err = m.Waiting(ctx, noon, core.Entry{}, at(5), 1)
	require.ErrorIs(t, err, context.Canceled)
	after, _ := m.Task("a")
	require.Equal(t, before, after)
}

func TestMemoryContendedTasksHaveOneWinnerEach(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	ids := make([]core.ID, 1000)
	for i := range ids {
		ids[i] = core.ID(fmt.Sprintf("id-%04d", i))
	}
	insert(t, m, "c", 0, ids...)
	var won atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := 0; i < len(ids); i += 50 {
				claimed, err := m.Claim(t.Context(), ids[i:i+50], lease(fmt.Sprint("h", g), 1, 10))
				assert.NoError(t, err)
				for _, c := range claimed {
					if c.Verdict == core.Granted {
						won.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, len(ids), won.Load())
}

// The ordered structures against what a scan of all tasks says, after each of
// many random steps.
func TestMemoryWaitingAgreesWithAScanOfAllTasks(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m := NewMemory(MemoryOptions{})
	grants := map[core.ID]core.Grant{}
	for step := range 20_000 {
		id := core.ID(fmt.Sprint(r.IntN(2000)))
		now := step / 200
		switch r.IntN(7) {
		case 0, 1, 2:
			_ = m.Insert(t.Context(), call(fmt.Sprint(step)), []core.Task{{ID: id, Due: at(r.IntN(100))}})
		case 3:
			if c := claimOne(t, m, id, lease(fmt.Sprint("h", step), now, now+r.IntN(30))); c.Verdict == core.Granted {
				grants[id] = c.Grant
			}
		case 4:
			_ = m.Settle(t.Context(), at(now), []core.Settlement{{Grant: grants[id], Outcome: core.Outcome(1 + r.IntN(4)), Due: at(r.IntN(100))}})
		case 5:
			_ = m.Reschedule(t.Context(), core.Call{Now: at(now)}, []core.Move{{ID: id, To: at(r.IntN(100))}})
		case 6:
			if r.IntN(3) == 0 {
				_, _ = m.Cancel(t.Context(), core.Call{Now: at(now)}, []core.ID{id})
			} else if r.IntN(20) == 0 {
				_, _ = m.Purge(t.Context(), at(now-r.IntN(20)), r.IntN(50))
			}
		}
		if step%100 != 0 {
			continue
		}
		after, before := core.Entry{ID: id, Due: at(r.IntN(50))}, at(r.IntN(120))
		var want []core.Entry
		finished := 0
		for task := range m.All() {
			if task.Status == DoneState || task.Status == Cancelled {
				finished++
			}
			e := core.Entry{ID: task.ID, Due: Time(task.Due)}
			free := task.Status == Pending || task.Status == Running && task.LeaseUntil < at(now).UnixMilli()
			if free && e.Due.Before(before) && compareEntries(e, after) > 0 {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, compareEntries)
		limit := 1 + r.IntN(500)
		got, err := m.Waiting(t.Context(), at(now), after, before, limit)
		require.NoError(t, err)
		require.Equal(t, want[:min(limit, len(want))], got, "step %d", step)
		require.Equal(t, finished, m.finished.count())
		for _, leaf := range slices.Concat(m.live.leaves, m.finished.leaves) {
			require.NotEmpty(t, leaf)
			require.LessOrEqual(t, len(leaf), maxLeaf)
		}
	}
}

func compareEntries(a, b core.Entry) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
}

func (o *order) count() int {
	n := 0
	for range o.after(stamp{ms: -1 << 62}) {
		n++
	}
	return n
}

func BenchmarkMemoryLifeOfATask(b *testing.B) {
	const batch = 500
	m := NewMemory(MemoryOptions{DeleteFinished: true})
	ctx := b.Context()
	backlog := make([]core.Task, 100_000)
	for i := range backlog {
		backlog[i] = core.Task{ID: core.ID(fmt.Sprint("later-", i)), Due: at(1000 + i)}
	}
	require.NoError(b, m.Insert(ctx, call("backlog"), backlog))
	tasks, ids, settlements := make([]core.Task, batch), make([]core.ID, batch), make([]core.Settlement, batch)
	for i := range tasks {
		ids[i] = core.ID(fmt.Sprint("task-", i))
		tasks[i] = core.Task{ID: ids[i], Payload: []byte("hello"), Due: at(i % 3)}
	}
	n, held := 0, time.Duration(0)
	for b.Loop() {
		n += batch
		require.NoError(b, m.Insert(ctx, call("c"), tasks))
		entries, err := m.Waiting(ctx, at(5), core.Entry{}, at(5), batch)
		require.NoError(b, err)
		require.Len(b, entries, batch)
		began := time.Now()
		claimed, err := m.Claim(ctx, ids, lease("h", 5, 10))
		held += time.Since(began)
		require.NoError(b, err)
		for i, c := range claimed {
			settlements[i] = core.Settlement{Grant: c.Grant, Outcome: core.Done}
		}
		began = time.Now()
		err = m.Settle(ctx, at(6), settlements)
		held += time.Since(began)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(held.Nanoseconds())/float64(n), "claim+settle-ns/task")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
}

package sqliteclaim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// Random calls, each answered by the reference store and by SQLite: the answers
// must be the same.
func TestAnswersAreThoseOfTheReference(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for _, deleteFinished := range []bool{false, true} {
		t.Run(fmt.Sprintf("DeleteFinished=%t", deleteFinished), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			h := history{
				r:      rand.New(rand.NewPCG(seed, 0)),
				memory: claim.NewMemory(claim.MemoryOptions{DeleteFinished: deleteFinished}),
				store:  open(t, file(t), sqliteclaim.Options{DeleteFinished: deleteFinished}),
			}
			for step := range 600 {
				h.now = noon.Add(time.Duration(step) * 100 * time.Millisecond)
				h.step(t, step)
			}
		})
	}
}

type history struct {
	r      *rand.Rand
	memory *claim.Memory
	store  *sqliteclaim.Store
	now    time.Time
	grants []twoGrants
	calls  []core.Call
	leases []core.Lease
}

// twoGrants are one and the same: how tokens are counted is each store's own affair, as
// long as they rise.
type twoGrants struct{ memory, store core.Grant }

// ids are few, so that calls meet; some break the rules.
func (h *history) ids() []core.ID {
	var ids []core.ID
	for _, n := range h.r.Perm(30)[:h.r.IntN(12)] {
		switch n {
		case 0:
			ids = append(ids, "Ünï\"co\\de <&> ', ?1 $table")
		case 1:
			ids = append(ids, "17")
		default:
			ids = append(ids, core.ID(fmt.Sprintf("id-%02d", n)))
		}
	}
	return ids
}

// time is within spread milliseconds of now, on the grid of all other times, so
// that equal ones are common.
func (h *history) time(spread int) time.Time {
	return h.now.Add(time.Duration(h.r.IntN(2*spread/100+1)-spread/100) * 100 * time.Millisecond)
}

// pick returns a new value, or now and then one that was used before: a repeat.
func pick[T any](r *rand.Rand, old *[]T, fresh T) T {
	if n := len(*old); n > 0 && r.IntN(4) == 0 {
		return (*old)[max(0, n-1-r.IntN(5))]
	}
	*old = append(*old, fresh)
	return fresh
}

func (h *history) step(t *testing.T, step int) {
	ctx, ids := t.Context(), h.ids()
	name := fmt.Sprint("call-", step)
	switch h.r.IntN(10) {
	case 0, 1:
		call := pick(h.r, &h.calls, core.Call{ID: name, Now: h.now})
		tasks := make([]core.Task, len(ids))
		for i, id := range ids {
			tasks[i] = core.Task{ID: id, Kind: name, Payload: []byte(name + "\x00\xff"), Meta: []byte{1, 0}, Due: h.time(5000), MaxAttempts: i}
		}
		h.same(t, step, h.memory.Insert(ctx, call, tasks), h.store.Insert(ctx, call, tasks))
	case 2, 3, 4:
		lease := pick(h.r, &h.leases, core.Lease{Holder: name, Now: h.now, DueBy: h.time(2000), Until: h.now.Add(time.Duration(h.r.IntN(40)) * 100 * time.Millisecond)})
		if h.r.IntN(2) == 0 {
			lease.Now = h.now // a repeat after the lease has ended
		}
		want, err := h.memory.Claim(ctx, ids, lease)
		require.NoError(t, err)
		got, err := h.store.Claim(ctx, ids, lease)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range got {
			if got[i].Verdict == core.Granted && want[i].Verdict == core.Granted {
				h.grants = append(h.grants, twoGrants{want[i].Grant, got[i].Grant})
				want[i].Grant.Token = got[i].Grant.Token
			}
		}
		require.Equal(t, want, got, "claim at step %d", step)
	case 5, 6:
		var inMemory, stored []core.Settlement
		for _, g := range h.recentGrants() {
			s := core.Settlement{Grant: g.memory, Outcome: core.Outcome(1 + h.r.IntN(4))}
			if s.Outcome == core.Retry || s.Outcome == core.Released {
				s.Due = h.time(5000)
			}
			if s.Outcome == core.Retry || s.Outcome == core.DeadLetter {
				s.Err = "failed \"so\"\n\t\\ at " + name
			}
			inMemory = append(inMemory, s)
			s.Grant = g.store
			stored = append(stored, s)
		}
		h.same(t, step, h.memory.Settle(ctx, h.now, inMemory), h.store.Settle(ctx, h.now, stored))
	case 7:
		var inMemory, stored []core.Grant
		for _, g := range h.recentGrants() {
			inMemory, stored = append(inMemory, g.memory), append(stored, g.store)
		}
		until := h.time(30_000)
		h.same(t, step, h.memory.Extend(ctx, inMemory, until), h.store.Extend(ctx, stored, until))
	case 8:
		ids = ids[:len(ids)/3]
		want, err := h.memory.Cancel(ctx, core.Call{Now: h.now}, ids)
		require.NoError(t, err)
		got, err := h.store.Cancel(ctx, core.Call{Now: h.now}, ids)
		require.NoError(t, err)
		require.Equal(t, want, got, "cancel at step %d", step)
	case 9:
		var moves []core.Move
		for _, id := range ids {
			m := core.Move{ID: id, To: h.time(5000)}
			if task, ok := h.memory.Task(id); ok && h.r.IntN(2) == 0 {
				m.From = claim.Time(task.Due)
			} else if h.r.IntN(2) == 0 {
				m.From = h.time(5000)
			}
			moves = append(moves, m)
		}
		h.same(t, step, h.memory.Reschedule(ctx, core.Call{Now: h.now}, moves), h.store.Reschedule(ctx, core.Call{Now: h.now}, moves))
	}
	h.look(t, step)
}

// look compares what is left, by Waiting, and now and then purges.
func (h *history) look(t *testing.T, step int) {
	ctx := t.Context()
	if step%50 == 0 {
		before, limit := h.time(60_000), h.r.IntN(10)
		want, err := h.memory.Purge(ctx, before, limit)
		require.NoError(t, err)
		got, err := h.store.Purge(ctx, before, limit)
		require.NoError(t, err)
		require.Equal(t, want, got, "purge at step %d", step)
	}
	after, before, limit := core.Entry{}, h.time(10_000), 1+h.r.IntN(20)
	if h.r.IntN(2) == 0 {
		after = core.Entry{ID: "id-15", Due: h.time(5000)}
	}
	want, err := h.memory.Waiting(ctx, h.now, after, before, limit)
	require.NoError(t, err)
	got, err := h.store.Waiting(ctx, h.now, after, before, limit)
	require.NoError(t, err)
	require.Equal(t, want, got, "waiting at step %d", step)
}

// recentGrants has each id once at most.
func (h *history) recentGrants() []twoGrants {
	var grants []twoGrants
	seen := map[core.ID]bool{}
	for range h.r.IntN(8) {
		if len(h.grants) == 0 {
			break
		}
		g := h.grants[max(0, len(h.grants)-1-h.r.IntN(30))]
		if h.r.IntN(10) == 0 {
			g.memory.Token++
			g.store.Token++
		}
		if !seen[g.store.ID] {
			grants = append(grants, g)
		}
		seen[g.store.ID] = true
	}
	return grants
}

func (h *history) same(t *testing.T, step int, want, got error) {
	t.Helper()
	var w, g *core.BatchError
	if !errors.As(want, &w) {
		require.NoError(t, want)
		require.NoError(t, got, "step %d", step)
		return
	}
	require.ErrorAs(t, got, &g, "step %d", step)
	require.Equal(t, w.Items, g.Items, "step %d", step)
}

package history

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The name and the rule of a model test, as the table of backends and rules has them.
const (
	modelCase = "history/model"
	modelRule = "Each call of a random history is answered as the plainest right implementation answers it, and leaves the same state."
)

// TestIndex plays random histories on a TimeIndex, as a subtest of t.
func TestIndex(t *testing.T, index conformance.Index, o Options) {
	t.Helper()
	require.NotNil(t, index.New, "conformance.Index.New is nil")
	t.Run(modelCase, func(t *testing.T) {
		attributes(t, modelCase, modelRule)
		report(t, o, func(seed uint64) *failure { return searchIndex(t, index, seed, o) })
	})
}

// report runs a search and tells what it found.
func report(t *testing.T, o Options, run func(seed uint64) *failure) {
	t.Helper()
	start := seed()
	t.Logf("%d random histories of %d steps on the average, seed %d (again: -rapid.seed=%d)", o.histories(false), o.steps(), start, start)
	if f := run(start); f != nil {
		t.Fatal(f.text(t.Name()))
	}
}

func searchIndex(t *testing.T, index conformance.Index, seed uint64, o Options) *failure {
	return search(t, seed, o, func(r *record) {
		first, peer := indexHandles(t, index)
		x := &indexRun{record: r, pools: drawPools(r.T), t: t, handles: []core.TimeIndex{first, peer}, right: naive.NewIndex("")}
		actions := map[string]func(*rapid.T){
			"": x.look, "add": x.add, "add more": x.add, "due": x.due, "move": x.move, "remove": x.remove,
		}
		if index.Provides.Taker {
			actions["take"], actions["take more"] = x.take, x.take
		}
		if index.Provides.Lister {
			actions["list"] = x.list
		}
		if index.Provides.Restorer {
			actions["add missing"] = x.addMissing
		}
		r.Repeat(actions)
	})
}

// indexRun is a history of an index.
type indexRun struct {
	*record
	pools
	t       *testing.T
	handles []core.TimeIndex
	right   *naive.Index
}

// at chooses the handle and the context of a call.
func (x *indexRun) at(t *rapid.T) (idx core.TimeIndex, ctx context.Context, who string) {
	i := rapid.IntRange(0, 1).Draw(t, "handle")
	return x.handles[i], callContext(t, x.t), [...]string{"first", "peer"}[i]
}

// callContext is now and then one that is done: the call must then fail and do nothing.
func callContext(t *rapid.T, test *testing.T) context.Context {
	if !chance(t, "ctx is done", 20) {
		return test.Context()
	}
	ctx, cancel := context.WithCancel(test.Context())
	cancel()
	return ctx
}

// refused checks the answer to a call whose ctx was done, and says whether it was.
// Free: whether a call without items notices.
func (r *record) refused(ctx context.Context, err error, items int) bool {
	if ctx.Err() == nil {
		return false
	}
	if err == nil && items > 0 {
		r.fail("got no error, want one: the ctx was done before the call")
	}
	return true
}

// unchanged fails where a call wrote to its argument or put it into another order.
func unchanged[T any](r *record, was, is []T, show func(T) string) {
	if w, i := list(was, show), list(is, show); w != i {
		r.fail("the call changed its argument, which is the caller's:\n got  %s\n want %s", i, w)
	}
}

// same fails where an answer differs from the right one.
func same[T any](r *record, what string, want, got []T, show func(T) string) {
	if w, g := list(want, show), list(got, show); w != g {
		r.fail("%s:\n got  %s\n want %s", what, g, w)
	}
}

func (x *indexRun) entries(t *rapid.T) []core.Entry {
	entries := []core.Entry{}
	for _, id := range some(t, "ids", x.ids, rapid.ID[core.ID]) {
		entries = append(entries, core.Entry{ID: id, Due: x.pools.due(t)})
	}
	return entries
}

// standing returns entries of which some are as the index has them.
func (x *indexRun) standing(t *rapid.T, removing bool) []core.Entry {
	now, _ := x.right.Due(context.Background(), endOfTime, 100)
	all := slices.Concat(now, now)
	for _, id := range x.ids {
		if removing && chance(t, "anywhere", 4) {
			all = append(all, core.Entry{ID: id})
		}
		all = append(all, core.Entry{ID: id, Due: x.pools.due(t)})
	}
	return some(t, "entries", all, idOf)
}

func (x *indexRun) add(t *rapid.T) {
	idx, ctx, who := x.at(t)
	change(x, ctx, who+": Add", x.entries(t), showEntry, idx.Add, x.right.Add)
}

func (x *indexRun) addMissing(t *rapid.T) {
	idx, ctx, who := x.at(t)
	change(x, ctx, who+": AddMissing", x.entries(t), showEntry, idx.(core.Restorer).AddMissing, x.right.AddMissing)
}

// change makes a call that only its effect can tell apart from another.
func change[T any](x *indexRun, ctx context.Context, name string, items []T, show func(T) string, tested, right func(context.Context, []T) error) {
	x.step("%s%s(%s)", name, showDone(ctx), list(items, show))
	arg := slices.Clone(items)
	err := tested(ctx, arg)
	unchanged(x.record, items, arg, show)
	if !x.refused(ctx, err, len(items)) {
		x.mustNot(err)
		_ = right(ctx, items)
	}
}

func (r *record) mustNot(err error) {
	if err != nil {
		r.fail("got error: %v", err)
	}
}

func (x *indexRun) move(t *rapid.T) {
	idx, ctx, who := x.at(t)
	moves := []core.Move{}
	for _, entry := range x.standing(t, false) {
		moves = append(moves, core.Move{ID: entry.ID, From: entry.Due, To: x.pools.due(t)})
	}
	change(x, ctx, who+": Move", moves, showMove, idx.Move, x.right.Move)
}

func (x *indexRun) remove(t *rapid.T) {
	idx, ctx, who := x.at(t)
	change(x, ctx, who+": Remove", x.standing(t, true), showEntry, idx.Remove, x.right.Remove)
}

func (x *indexRun) due(t *rapid.T) {
	idx, ctx, who := x.at(t)
	now, limit := x.pools.due(t), rapid.IntRange(1, 7).Draw(t, "limit")
	x.step("%s: Due%s(%s, %d)", who, showDone(ctx), stamp(now), limit)
	got, err := idx.Due(ctx, now, limit)
	if !x.refused(ctx, err, 1) {
		x.mustNot(err)
		want, _ := x.right.Due(ctx, now, limit)
		same(x.record, "entries", want, got, showEntry)
	}
}

func (x *indexRun) list(t *rapid.T) {
	idx, ctx, who := x.at(t)
	after, before, limit := core.Entry{}, x.pools.due(t), rapid.IntRange(1, 7).Draw(t, "limit")
	if chance(t, "goes on", 2) {
		after = core.Entry{ID: rapid.SampledFrom(x.ids).Draw(t, "after"), Due: x.pools.due(t)}
	}
	x.step("%s: List%s(%s, before %s, %d)", who, showDone(ctx), showEntry(after), stamp(before), limit)
	got, err := idx.(core.Lister).List(ctx, after, before, limit)
	if !x.refused(ctx, err, 1) {
		x.mustNot(err)
		want, _ := x.right.List(ctx, after, before, limit)
		same(x.record, "entries", want, got, showEntry)
	}
}

func (x *indexRun) take(t *rapid.T) {
	idx, ctx, who := x.at(t)
	now, limit := x.now(t), rapid.IntRange(1, 7).Draw(t, "limit")
	until := x.after(t, now)
	x.step("%s: Take%s(now %s, until %s, %d)", who, showDone(ctx), stamp(now), stamp(until), limit)
	got, next, err := idx.(core.Taker).Take(ctx, now, until, limit)
	if !x.refused(ctx, err, 1) {
		x.mustNot(err)
		want, wantNext, _ := x.right.Take(ctx, now, until, limit)
		same(x.record, "taken", want, got, showID)
		same(x.record, "next", []time.Time{wantNext}, []time.Time{next}, stamp)
	}
}

// look compares all entries, as the peer sees them.
func (x *indexRun) look(*rapid.T) {
	ctx := x.t.Context()
	got, err := x.handles[1].Due(ctx, endOfTime, 1_000)
	x.mustNot(err)
	want, _ := x.right.Due(ctx, endOfTime, 1_000)
	same(x.record, "entries in the index afterwards", want, got, showEntry)
}

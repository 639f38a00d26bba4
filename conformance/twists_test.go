package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

// A twist is one thing wrong in what a right store is told or in what it answers: most
// bugs of an adapter can be said so, in a line. Each func changes its argument in place
// or returns another; nil changes nothing.
type twist struct {
	want string // the case meant for it

	// What the store is told.
	ctx        func(ctx context.Context) context.Context
	call       func(call *core.Call)
	tasks      func(tasks []core.Task) []core.Task
	ids        func(ids []core.ID) []core.ID // of Claim
	lease      func(lease *core.Lease)
	grant      func(g *core.Grant) // of Extend
	until      func(until time.Time) time.Time
	settled    func(x *core.Settlement)
	page       func(page *page)
	moves      func(moves []core.Move) []core.Move
	cancelled  func(ids []core.ID) []core.ID
	cancelNow  func(now time.Time) time.Time
	settledNow func(now time.Time) time.Time
	purged     func(before *time.Time, limit *int)

	// What it answers.
	claimed func(c *core.Claimed)
	answer  func(got []core.Claimed) []core.Claimed
	waiting func(entries []core.Entry) []core.Entry
	fates   func(fates []core.Fate) []core.Fate
	count   func(n int) int // of Purge
	now     func(now time.Time) time.Time
	err     func(err error) error // of any method, of nil too
	items   func(items []core.ItemError) []core.ItemError
}

// page are the arguments of Waiting.
type page struct {
	now    time.Time
	after  core.Entry
	before time.Time
	limit  int
}

// twisted is a right store but for a twist.
type twisted struct {
	*naive.Clocked
	by twist
}

func (s twisted) ctx(ctx context.Context) context.Context { return then(s.by.ctx, ctx) }

// then is f of v, or v where there is no f.
func then[T any](f func(T) T, v T) T {
	if f == nil {
		return v
	}
	return f(v)
}

// each has f change each item of a copy.
func each[T any](f func(*T), list []T) []T {
	list = append([]T(nil), list...)
	for i := range list {
		touch(f, &list[i])
	}
	return list
}

func touch[T any](f func(*T), v *T) {
	if f != nil {
		f(v)
	}
}

func (s twisted) said(err error) error {
	var batch *core.BatchError
	if s.by.items != nil && asBatch(err, &batch) {
		err = core.NewBatchError(s.by.items(append([]core.ItemError(nil), batch.Items...)))
	}
	return then(s.by.err, err)
}

func (s twisted) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	touch(s.by.call, &call)
	return s.said(s.Clocked.Insert(s.ctx(ctx), call, then(s.by.tasks, append([]core.Task(nil), tasks...))))
}

func (s twisted) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	touch(s.by.lease, &lease)
	got, err := s.Clocked.Claim(s.ctx(ctx), then(s.by.ids, append([]core.ID(nil), ids...)), lease)
	return then(s.by.answer, each(s.by.claimed, got)), s.said(err)
}

func (s twisted) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return s.said(s.Clocked.Extend(s.ctx(ctx), each(s.by.grant, grants), then(s.by.until, until)))
}

func (s twisted) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return s.said(s.Clocked.Settle(s.ctx(ctx), then(s.by.settledNow, now), each(s.by.settled, settlements)))
}

func (s twisted) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	p := page{now, after, before, limit}
	touch(s.by.page, &p)
	got, err := s.Clocked.Waiting(s.ctx(ctx), p.now, p.after, p.before, p.limit)
	return then(s.by.waiting, got), s.said(err)
}

func (s twisted) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	call.Now = then(s.by.cancelNow, call.Now)
	got, err := s.Clocked.Cancel(s.ctx(ctx), call, then(s.by.cancelled, append([]core.ID(nil), ids...)))
	return then(s.by.fates, got), s.said(err)
}

func (s twisted) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	return s.said(s.Clocked.Reschedule(s.ctx(ctx), call, then(s.by.moves, append([]core.Move(nil), moves...))))
}

func (s twisted) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if s.by.purged != nil {
		s.by.purged(&before, &limit)
	}
	n, err := s.Clocked.Purge(s.ctx(ctx), before, limit)
	return then(s.by.count, n), s.said(err)
}

func (s twisted) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Clocked.Now(s.ctx(ctx))
	return then(s.by.now, now), s.said(err)
}

// twistedIndex is a right index but for a twist of its own kind.
type indexTwist struct {
	want    string
	ctx     func(ctx context.Context) context.Context
	added   func(entries []core.Entry) []core.Entry
	removed func(entries []core.Entry) []core.Entry
	missing func(entries []core.Entry) []core.Entry
	moved   func(moves []core.Move) []core.Move
	now     func(now time.Time) time.Time   // of Due and Take
	until   func(until time.Time) time.Time // of Take
	limit   func(n int) int
	due     func(entries []core.Entry) []core.Entry
	taken   func(ids []core.ID) []core.ID
	next    func(next time.Time) time.Time
	list    func(page *page) // what List is asked for
	listed  func(entries []core.Entry) []core.Entry
	name    func(generation string) string
	notify  func(notify func()) func()
	err     func(err error) error
}

type twistedIndex struct {
	*naive.Index
	by indexTwist
}

func clone[T any](list []T) []T { return append([]T(nil), list...) }

func (x twistedIndex) Add(ctx context.Context, entries []core.Entry) error {
	return then(x.by.err, x.Index.Add(then(x.by.ctx, ctx), then(x.by.added, clone(entries))))
}

func (x twistedIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	got, err := x.Index.Due(then(x.by.ctx, ctx), then(x.by.now, now), then(x.by.limit, limit))
	return then(x.by.due, got), then(x.by.err, err)
}

func (x twistedIndex) Move(ctx context.Context, moves []core.Move) error {
	return then(x.by.err, x.Index.Move(then(x.by.ctx, ctx), then(x.by.moved, clone(moves))))
}

func (x twistedIndex) Remove(ctx context.Context, entries []core.Entry) error {
	return then(x.by.err, x.Index.Remove(then(x.by.ctx, ctx), then(x.by.removed, clone(entries))))
}

func (x twistedIndex) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	got, next, err := x.Index.Take(then(x.by.ctx, ctx), then(x.by.now, now), then(x.by.until, until), then(x.by.limit, limit))
	return then(x.by.taken, got), then(x.by.next, next), then(x.by.err, err)
}

func (x twistedIndex) AddMissing(ctx context.Context, entries []core.Entry) error {
	return then(x.by.err, x.Index.AddMissing(then(x.by.ctx, ctx), then(x.by.missing, clone(entries))))
}

func (x twistedIndex) List(ctx context.Context, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	p := page{after: after, before: before, limit: limit}
	touch(x.by.list, &p)
	got, err := x.Index.List(then(x.by.ctx, ctx), p.after, p.before, p.limit)
	return then(x.by.listed, got), then(x.by.err, err)
}

func (x twistedIndex) Generation(ctx context.Context) (string, error) {
	name, err := x.Index.Generation(then(x.by.ctx, ctx))
	return then(x.by.name, name), then(x.by.err, err)
}

func (x twistedIndex) Watch(ctx context.Context, notify func()) error {
	return then(x.by.err, x.Index.Watch(then(x.by.ctx, ctx), then(x.by.notify, notify)))
}

func TestEachTwistOfAStoreFailsTheCaseMeantForIt(t *testing.T) {
	eachTwist(t, "twisted stores", storeTwists(), func(t *testing.T, by twist) (string, map[string]string) {
		backend := naiveStoreBackend("", false)
		right := backend.New
		backend.New = func(t *testing.T) core.Store { return twisted{right(t).(*naive.Clocked), by} }
		backend.Peer = func(_ *testing.T, first core.Store) core.Store { return twisted{first.(twisted).Peer(), by} }
		backend.Neighbour = nil
		return by.want, conformance.StoreFailures(t, backend, func(name string) bool { return name == by.want })
	})
}

func TestEachTwistOfAnIndexFailsTheCaseMeantForIt(t *testing.T) {
	eachTwist(t, "twisted indexes", indexTwists(), func(t *testing.T, by indexTwist) (string, map[string]string) {
		backend := naiveIndexBackend("")
		backend.New = func(*testing.T) core.TimeIndex { return twistedIndex{naive.NewIndex(""), by} }
		backend.Peer = func(_ *testing.T, first core.TimeIndex) core.TimeIndex {
			return twistedIndex{first.(twistedIndex).Peer(), by}
		}
		backend.Break = func(_ *testing.T, idx core.TimeIndex) func() { return idx.(twistedIndex).Break() }
		backend.Hold = func(_ *testing.T, idx core.TimeIndex) func() { return idx.(twistedIndex).Hold() }
		backend.Idle = nil
		backend.Lose = func(_ *testing.T, idx core.TimeIndex) { idx.(twistedIndex).Lose() }
		backend.Neighbour = nil
		return by.want, conformance.IndexFailures(t, backend, func(name string) bool { return name == by.want })
	})
}

func eachTwist[T any](t *testing.T, what string, twists map[string]T, run func(*testing.T, T) (want string, failures map[string]string)) {
	t.Helper()
	var caught atomic.Int64
	t.Run("all", func(t *testing.T) { // ends when the parallel ones have
		for name, by := range twists {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				want, failures := run(t, by)
				text := failures[want]
				assert.True(t, strings.HasPrefix(text, "broken rule: "), "%s is to catch the bug; got %q", want, text)
				assert.NotRegexp(t, `(?m)^the (case|hook \S+) (panics|hangs): `, text, "a bug that is found by chance")
				if !t.Failed() {
					caught.Add(1)
				}
			})
		}
	})
	t.Attr("dueclaim.caught", fmt.Sprintf("%s: %d of %d", what, caught.Load(), len(twists)))
}

// byTwist tells whether a twist is there to be caught by the case.
func byTwist(name string) bool {
	for _, by := range storeTwists() {
		if by.want == name {
			return true
		}
	}
	for _, by := range indexTwists() {
		if by.want == name {
			return true
		}
	}
	return false
}

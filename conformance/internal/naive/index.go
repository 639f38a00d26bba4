// Package naive has an index and a store written straight from the rules of the
// contract, as plainly as can be: the oracle that adapters are compared with,
// and, each time with one rule broken by name, the backends on which the suite
// shows that it finds that very bug.
package naive

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Index is the plainest right core.TimeIndex: a map, scanned and sorted for each
// answer.
type Index struct {
	bug  string
	data *entries
}

// entries is what the handles of one index share.
type entries struct {
	mu       sync.Mutex
	due      map[core.ID]time.Time
	taken    map[core.ID]bool // by Take, at some time
	watchers map[*func()]*Index
	broken   bool
	slow     sync.Once
	cut      chan struct{} // closed when the backend fails
	lives    int           // losses so far
	seen     bool          // entries since the last one
	other    *entries      // those of the queue beside this one
	whole    whole
}

// NewIndex returns an empty index that breaks the one rule that bug names; none
// for "".
func NewIndex(bug string) *Index {
	due := map[core.ID]time.Time{}
	if bug == "not empty at first" {
		due["left over"] = time.UnixMilli(1).UTC()
	}
	return &Index{bug, &entries{due: due, taken: map[core.ID]bool{}, watchers: map[*func()]*Index{}, cut: make(chan struct{})}}
}

// Peer returns a further handle on the same data.
func (x *Index) Peer() *Index { return &Index{x.bug, x.data} }

func (x *Index) key(id core.ID) core.ID {
	if x.bug == "ids ignore case" {
		return core.ID(strings.ToLower(string(id)))
	}
	return id
}

func (x *Index) time(t time.Time) time.Time {
	switch x.bug {
	case "times in seconds":
		return t.Truncate(time.Second)
	case "times in local zone":
		return t.In(time.FixedZone("X", 3600))
	default:
		return t
	}
}

// Add implements core.TimeIndex.
func (x *Index) Add(ctx context.Context, entries []core.Entry) error {
	if err := x.enter(ctx, len(entries)); err != nil {
		return unless(x.hides(len(entries)), err)
	}
	if x.bug == "half a batch is a success" && interrupted(ctx, len(entries)) {
		entries = entries[:len(entries)/2]
	}
	if x.bug == "batch cut at 1,000" {
		entries = entries[:min(len(entries), 1000)]
	}
	if x.bug == "argument sorted" {
		slices.SortFunc(entries, func(a, b core.Entry) int { return cmp.Compare(a.ID, b.ID) })
	}
	x.across("add without the queue", func(other *Index) { _ = other.Add(ctx, entries) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	if x.bug == "index written back whole" {
		before := maps.Clone(x.data.due)
		x.data.mu.Unlock()
		time.Sleep(10 * time.Microsecond)
		x.data.mu.Lock()
		x.data.due = before
	}
	head, any := x.head()
	known := x.bug == "watch hears new ids only" && !slices.ContainsFunc(entries, func(entry core.Entry) bool {
		_, there := x.data.due[entry.ID]
		return !there
	})
	for _, entry := range entries {
		id, due := x.key(entry.ID), x.time(entry.Due)
		old, there := x.data.due[id]
		if there && x.bug == "add stops at a known id" && len(entries) > 1 {
			break
		}
		keep := there && !due.Before(old)
		switch x.bug {
		case "add keeps the later":
			keep = there && due.Before(old)
		case "add overwrites":
			keep = false
		case "add refuses known ids":
			keep = there
		}
		if !keep {
			x.data.due[id] = due
		}
	}
	now, some := x.head()
	switch {
	case len(entries) == 0 || x.bug != "watch looks at the last only" && x.bug != "watch looks at the first 256 only":
	case x.bug == "watch looks at the last only":
		known = entries[len(entries)-1].Due.After(now)
	default:
		known = !slices.ContainsFunc(entries[:min(len(entries), 256)], func(e core.Entry) bool { return e.Due.Equal(now) })
	}
	if some && !known && (!any && x.bug != "watch hears no first entry" || any && now.Before(head)) {
		x.tell()
	}
	return nil
}

// tell wakes the watchers.
func (x *Index) tell() {
	for notify, watcher := range x.data.watchers {
		if x.bug != "watch hears its own handle only" || watcher == x {
			(*notify)()
		}
	}
}

func (x *Index) head() (due time.Time, any bool) {
	for _, d := range x.data.due {
		if !any || d.Before(due) {
			due, any = d, true
		}
	}
	return due, any
}

// Due implements core.TimeIndex.
func (x *Index) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if err := x.enter(ctx, limit); err != nil {
		return nil, unless(x.bug == "broken index is empty", err)
	}
	if x.bug == "hangs" {
		<-ctx.Done() // until the suite gives up on it
	}
	if x.bug == "panics" {
		panic("no such luck")
	}
	var theirs []core.Entry
	x.across("due without the queue", func(other *Index) { theirs, _ = other.Due(ctx, now, limit) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	return append(x.first(now, limit), theirs...), nil
}

func (x *Index) first(now time.Time, limit int) []core.Entry {
	var list []core.Entry
	for id, due := range x.data.due {
		if due.Before(now) || due.Equal(now) && x.bug != "due excludes now" {
			list = append(list, core.Entry{ID: id, Due: due})
		}
	}
	slices.SortFunc(list, func(a, b core.Entry) int {
		ties := bytes.Compare([]byte(a.ID), []byte(b.ID))
		switch x.bug {
		case "ties in any order":
			ties = -ties
		case "ties without case":
			ties = strings.Compare(strings.ToLower(string(a.ID)), strings.ToLower(string(b.ID)))
		}
		return cmp.Or(a.Due.Compare(b.Due), ties)
	})
	if x.bug == "limit ignored" {
		return list
	}
	return list[:min(limit, len(list))]
}

// Move implements core.TimeIndex.
func (x *Index) Move(ctx context.Context, moves []core.Move) error {
	if x.bug == "move panics" {
		panic("no such luck")
	}
	if err := x.enter(ctx, len(moves)); err != nil {
		return unless(x.hides(len(moves)), err)
	}
	if x.bug == "last of exactly 1,024 lost" && len(moves) == 1024 {
		moves = moves[:1023]
	}
	x.across("move without the queue", func(other *Index) { _ = other.Move(ctx, moves) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	if x.bug == "move all or nothing" && slices.ContainsFunc(moves, func(m core.Move) bool { return !x.data.due[x.key(m.ID)].Equal(m.From) }) {
		return nil
	}
	for _, m := range moves {
		id := x.key(m.ID)
		due, there := x.data.due[id]
		ok := there && due.Equal(x.time(m.From))
		switch x.bug {
		case "move without compare":
			ok = there
		case "move puts what is missing":
			ok = ok || !there
		case "move only later":
			ok = ok && m.To.After(m.From)
		}
		if ok {
			x.data.due[id] = x.time(m.To)
		}
	}
	return nil
}

// Remove implements core.TimeIndex.
func (x *Index) Remove(ctx context.Context, entries []core.Entry) error {
	if err := x.enter(ctx, len(entries)); err != nil {
		return unless(x.hides(len(entries)), err)
	}
	x.across("remove without the queue", func(other *Index) { _ = other.Remove(ctx, entries) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	for _, entry := range entries {
		id := x.key(entry.ID)
		if x.bug == "remove stops at a stranger" && !entry.Due.IsZero() && !x.data.due[id].Equal(entry.Due) {
			break
		}
		if due, there := x.data.due[id]; there && (due.Equal(x.time(entry.Due)) || entry.Due.IsZero() && x.bug != "remove compares with no time" || x.bug == "remove without compare") {
			delete(x.data.due, id)
		}
	}
	return nil
}

// Take implements core.Taker.
func (x *Index) Take(ctx context.Context, now, until time.Time, limit int) (taken []core.ID, next time.Time, err error) {
	if err := x.enter(ctx, 1); err != nil {
		return nil, time.Time{}, unless(x.bug == "broken index is empty", err)
	}
	var elsewhere time.Time
	x.across("take without the queue", func(other *Index) { _, _, _ = other.Take(ctx, now, until, limit) })
	x.across("next of any queue", func(other *Index) { _, elsewhere, _ = other.Take(ctx, time.Time{}, until, limit) })
	x.data.mu.Lock()
	defer x.data.mu.Unlock()
	for _, entry := range x.first(now, limit) {
		taken = append(taken, entry.ID)
	}
	if x.bug == "take not atomic" {
		x.data.mu.Unlock()
		runtime.Gosched()
		x.data.mu.Lock()
	}
	if x.bug == "take in any order" {
		slices.Reverse(taken)
	}
	for _, id := range taken {
		switch x.bug {
		case "take removes":
			delete(x.data.due, id)
		default:
			x.data.due[id] = x.time(until)
			x.data.taken[id] = true
		}
	}
	for id, due := range x.data.due {
		counted := taken
		if x.bug == "next counts what the first of two steps took" && len(taken) > 256 && len(taken) <= 512 {
			counted = taken[256:]
		}
		if slices.Contains(counted, id) && x.bug != "next counts what was taken" {
			continue
		}
		if x.bug == "next skips what is due" && !due.After(now) {
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if !elsewhere.IsZero() && elsewhere.Before(next) {
		next = elsewhere
	}
	if x.bug == "next missing" {
		next = time.Time{}
	}
	return taken, next, nil
}

// Watch implements core.Watcher.
func (x *Index) Watch(ctx context.Context, notify func()) error {
	if x.bug == "watch waits though it's over" && ctx.Err() != nil {
		dawdle()
	}
	if x.bug == "watch panics" {
		panic("no such luck")
	}
	if x.bug == "watch never hears" {
		<-ctx.Done()
		return ctx.Err()
	}
	if x.bug == "watch returns at once" {
		return nil
	}
	if x.bug == "watch leaks" {
		go func() { time.Sleep(time.Minute) }()
	}
	x.data.mu.Lock()
	if x.bug == "one watch only" {
		clear(x.data.watchers)
	}
	x.data.watchers[&notify] = x
	cut := x.data.cut
	x.data.mu.Unlock()
	err := errAway
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-cut:
	}
	x.data.mu.Lock()
	delete(x.data.watchers, &notify)
	x.data.mu.Unlock()
	if x.bug == "watch goes deaf" {
		<-ctx.Done()
	}
	return unless(x.bug == "broken watch returns nil", err)
}

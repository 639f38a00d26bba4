package naive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Store is the plainest right core.Store: one map, scanned for each answer.
type Store struct {
	bug string
	// Deletes has done and cancelled rows go at once.
	Deletes bool

	mu     sync.Mutex
	rows   map[core.ID]*row
	tokens *tokens
	locked map[core.ID]bool
	broken bool
	slow   sync.Once
	cursor core.Entry      // where the last page of Waiting ended
	wrote  map[string]bool // what users wrote in their transactions
	other  *Store          // the queue beside this one
	whole  whole
}

type row struct {
	task              core.Task // Due is what was asked for
	state             string    // pending, running, done, dead, cancelled
	due               time.Time // from when it may be claimed
	token             int64
	holder            string
	until             time.Time
	attempts, crashes int
	call              string
	finished          time.Time
	wasRunning        bool
	unseen            bool // by Waiting: a bug
}

// NewStore returns an empty store that breaks the one rule that bug names; none
// for "".
func NewStore(bug string) *Store {
	return &Store{bug: bug, rows: map[core.ID]*row{}, locked: map[core.ID]bool{}, wrote: map[string]bool{}, tokens: &tokens{}}
}

func (s *Store) is(bug string) bool { return s.bug == bug }

// gap lets others in between a check and its write.
func (s *Store) gap(bug string) {
	if s.is(bug) {
		s.mu.Unlock()
		time.Sleep(10 * time.Microsecond)
		s.mu.Lock()
	}
}

func (s *Store) key(id core.ID) core.ID {
	switch {
	case s.is("ids ignore case"):
		return core.ID(strings.ToLower(string(id)))
	case s.is("ids cut at 191 bytes"):
		return id[:min(len(id), 191)]
	default:
		return id
	}
}

func (s *Store) row(id core.ID) *row { return s.rows[s.key(id)] }

func (s *Store) time(t time.Time) time.Time {
	if s.is("times in seconds") {
		return t.Truncate(time.Second)
	}
	return t
}

func (r *row) live() bool { return r.state == "pending" || r.state == "running" }

func (r *row) heldAt(now time.Time) bool { return r.state == "running" && !r.until.Before(now) }

func (s *Store) finish(id core.ID, r *row, state string, now time.Time) {
	r.state, r.finished = state, now
	s.thin()
	if s.Deletes && state != "dead" {
		delete(s.rows, s.key(id))
	}
}

// Insert implements core.Store.
func (s *Store) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if err := s.enterBy(ctx, "insert", call.By, len(tasks)); err != nil {
		return unless(s.hides(len(tasks)), err)
	}
	if s.is("half a batch is a success") && interrupted(ctx, len(tasks)) {
		tasks = tasks[:len(tasks)/2]
	}
	s.across("insert without the queue", func(other *Store) { _ = other.insert(call, tasks) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insert(call, tasks)
}

func (s *Store) insert(call core.Call, tasks []core.Task) error {
	if i := slices.IndexFunc(tasks, func(t core.Task) bool { return s.lockedFor(t.ID) }); i >= 0 {
		if s.is("a locked row is named, the others forgotten") {
			return core.NewBatchError([]core.ItemError{{Index: i, ID: tasks[i].ID, Err: core.ErrBusy}})
		}
		return unless(s.is("a locked row is passed over"), errLocked)
	}
	if s.is("batch cut at 1,000") {
		tasks = tasks[:min(len(tasks), 1000)]
	}
	var before map[core.ID]*row
	if s.is("one bad fails all") {
		before = s.copied()
	}
	var failed []core.ItemError
	heavy := 0
	callID := call.ID
	if s.is("call ids ignore case") {
		callID = strings.ToLower(callID)
	}
	if s.is("call ids cut at 63 bytes") {
		callID = callID[:min(len(callID), 63)]
	}
	for i, task := range tasks {
		old := s.row(task.ID)
		switch {
		case old != nil && old.call == callID && !s.is("insert repeat replaces") && !s.is("insert repeat exists"):
			continue
		case old != nil && old.live() && old.call == callID && s.is("insert repeat replaces"):
		case old != nil && old.live() && !s.is("insert replaces live"):
			failed = append(failed, core.ItemError{Index: i, ID: task.ID, Err: core.ErrExists})
			continue
		}
		r := &row{task: task, state: "pending", due: s.time(task.Due), token: s.firstToken(call), call: callID}
		r.task.Due = r.due
		if !s.shares(task.Payload) {
			r.task.Payload, r.task.Meta = bytes.Clone(task.Payload), bytes.Clone(task.Meta)
		}
		if s.is("payload cut at 64 KiB") {
			r.task.Payload = r.task.Payload[:min(len(r.task.Payload), 64<<10)]
		}
		if s.is("payload ends at NUL") {
			r.task.Payload, _, _ = bytes.Cut(r.task.Payload, []byte{0})
		}
		if s.is("kind trimmed") {
			r.task.Kind = strings.TrimRight(task.Kind, " ")
		}
		if old != nil {
			r.token = max(old.token+1, r.token)
			if s.is("reuse keeps counts") {
				r.attempts, r.crashes = old.attempts, old.crashes
			}
		}
		if s.is("token restarts on reuse") {
			r.token = 0
		}
		if s.is("token from Call.Now on reuse") {
			r.token = call.Now.UnixMilli()
		}
		heavy += len(task.Payload)
		if heavy > 4<<20 && s.is("the item at the cut by bytes is lost") {
			heavy = 0
			continue
		}
		s.gap("insert checks, then writes")
		s.rows[s.key(task.ID)] = r
	}
	if before != nil && len(failed) > 0 {
		s.rows = before
	}
	if s.is("insert failures misplaced") {
		for i := range failed {
			failed[i].Index = i
		}
	}
	return core.NewBatchError(s.misplaced(failed))
}

// Extend implements core.Claimer.
func (s *Store) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if err := s.enter(ctx, len(grants)); err != nil {
		return unless(s.hides(len(grants)), err)
	}
	s.across("extend without the queue", func(other *Store) { _ = other.Extend(ctx, grants, until) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []core.ItemError
	for i, g := range grants {
		r := s.row(g.ID)
		if s.lockedFor(g.ID) {
			failed = append(failed, core.ItemError{Index: i, ID: g.ID, Err: core.ErrBusy})
		} else if !(s.holds(r, g) || s.is("no token on extend") && r != nil) || r.state != "running" || s.is("extend reads a clock") && r.until.Before(time.Now()) {
			failed = append(failed, core.ItemError{Index: i, ID: g.ID, Err: core.ErrLeaseLost})
		}
	}
	if len(failed) > 0 && (s.is("extend all or nothing") || s.is("a locked row stops the others") && errors.Is(failed[0].Err, core.ErrBusy)) {
		return core.NewBatchError(failed)
	}
	failed = s.misplaced(failed)
	for i, g := range grants {
		if slices.ContainsFunc(failed, func(f core.ItemError) bool { return f.Index == i }) {
			continue
		}
		r := s.row(g.ID)
		if until.After(r.until) || s.is("extend shortens") {
			r.until = s.leaseEnd(until)
		} else if until.Equal(r.until) && s.is("extend repeat lost") {
			failed = append(failed, core.ItemError{Index: i, ID: g.ID, Err: core.ErrLeaseLost})
		}
	}
	return core.NewBatchError(failed)
}

// Settle implements core.Claimer.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if err := s.enter(ctx, len(settlements)); err != nil {
		if s.is("broken items fail") && errors.Is(err, errAway) {
			return allFail(settlements, err)
		}
		return unless(s.hides(len(settlements)), err)
	}
	if s.is("half a batch is a success") && interrupted(ctx, len(settlements)) {
		settlements = settlements[:len(settlements)/2]
	}
	if s.is("cancelled items fail") && interrupted(ctx, len(settlements)) {
		return allFail(settlements, ctx.Err())
	}
	s.across("settle without the queue", func(other *Store) { _ = other.settleAll(now, settlements) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settleAll(now, settlements)
}

func (s *Store) settleAll(now time.Time, settlements []core.Settlement) error {
	if s.is("rows written back whole") {
		before := s.copied()
		s.gap(s.bug)
		s.rows = before
	}
	if s.is("batch cut at 1,000") {
		settlements = settlements[:min(len(settlements), 1000)]
	}
	var failed []core.ItemError
	for i, x := range settlements {
		r := s.row(x.Grant.ID)
		switch {
		case s.lockedFor(x.Grant.ID):
			failed = append(failed, core.ItemError{Index: i, ID: x.Grant.ID, Err: core.ErrBusy})
			continue
		case r == nil && s.is("settle of the missing succeeds"):
			continue
		case !s.fenced(r, x), r.state == "cancelled" && !s.is("settle of a cancelled one succeeds"),
			s.is("settle refuses late") && r.state == "running" && r.until.Before(now),
			s.is("settle repeat refused") && r.state != "running":
			failed = append(failed, core.ItemError{Index: i, ID: x.Grant.ID, Err: core.ErrLeaseLost})
			continue
		case r.state != "running" && s.is("retry written again") && x.Outcome == core.Retry:
			r.due = x.Due
			continue
		case r.state != "running" && !s.is("settle changes the settled"):
			continue // a repeat
		}
		s.gap("settle checks, then writes")
		s.settle(now, x, r)
	}
	return core.NewBatchError(s.misplaced(failed))
}

func (s *Store) settle(now time.Time, x core.Settlement, r *row) {
	switch x.Outcome {
	case core.Done:
		if s.is("done stays pending") {
			r.state = "pending"
			return
		}
		s.finish(x.Grant.ID, r, "done", now)
	case core.DeadLetter:
		s.finish(x.Grant.ID, r, "dead", now)
	case core.Retry:
		r.state, r.due = "pending", s.time(x.Due)
		if s.is("retry due at once") {
			r.due = now
		}
		if !s.is("retry keeps Task.Due") {
			r.task.Due = r.due
		}
	case core.Released:
		r.state, r.due = "pending", s.time(x.Due)
		if !s.is("release counts the attempt") {
			r.attempts--
		}
		if s.is("release changes Task.Due") {
			r.task.Due = r.due
		}
	}
}

// Waiting implements core.Claimer.
func (s *Store) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := s.enter(ctx, limit); err != nil {
		return nil, unless(s.is("broken waiting is empty"), err)
	}
	var theirs []core.Entry
	s.across("waiting without the queue", func(other *Store) { theirs, _ = other.Waiting(ctx, now, after, before, limit) })
	s.mu.Lock()
	defer s.mu.Unlock()
	compare := func(a, b core.Entry) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) }
	list := theirs
	for _, r := range s.rows {
		entry := core.Entry{ID: r.task.ID, Due: r.due}
		behind := compare(entry, after) > 0
		if s.is("pages skip equal dues") {
			behind = entry.Due.After(after.Due)
		}
		if s.is("a cursor without an id is after its time") && after.ID == "" && !after.Due.IsZero() {
			behind = entry.Due.After(after.Due)
		}
		if s.is("after before 2000 is none") && after.Due.Year() < 2000 {
			behind = true
		}
		bound := entry.Due.Before(before) || s.is("bound inclusive") && entry.Due.Equal(before)
		if r.live() && !r.unseen && behind && bound {
			list = append(list, entry)
		}
	}
	slices.SortFunc(list, compare)
	if s.is("waiting looks at 500 rows") {
		list = list[:min(500, len(list))]
	}
	hidden := func(entry core.Entry) bool {
		r := s.row(entry.ID)
		return r != nil && r.heldAt(now) && !s.is("waiting shows the held") && !s.is("leases ignored") || s.is("waiting hides the lapsed") && r.state == "running"
	}
	if s.is("waiting hides all") {
		return nil, nil
	}
	if s.is("limit counts the held") {
		list = list[:min(limit, len(list))]
	}
	list = slices.DeleteFunc(list, hidden)
	if s.is("a sweep with a stored cursor") {
		list = slices.DeleteFunc(list, func(entry core.Entry) bool { return compare(entry, s.cursor) < 0 })
	}
	list = list[:min(limit, len(list))]
	if len(list) > 0 {
		s.cursor = list[len(list)-1]
	}
	return list, nil
}

// Cancel implements core.Store.
func (s *Store) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	if err := s.enterBy(ctx, "cancel", call.By, len(ids)); err != nil {
		if s.is("broken cancel is unknown") && errors.Is(err, errAway) {
			return slices.Repeat([]core.Fate{core.Unknown}, len(ids)), nil
		}
		return nil, err
	}
	s.across("cancel without the queue", func(other *Store) { _, _ = other.Cancel(ctx, call, ids) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var fates []core.Fate
	var busy []core.ItemError
	for i, id := range ids {
		r := s.row(id)
		switch {
		case s.lockedFor(id):
			fates = append(fates, 0)
			busy = append(busy, core.ItemError{Index: i, ID: id, Err: core.ErrBusy})
		case r == nil && s.is("cancel of the missing succeeds"):
			fates = append(fates, core.Cancelled)
		case r == nil:
			fates = append(fates, core.Unknown)
		case !r.live() && r.state != "cancelled":
			fates = append(fates, core.Finished)
			if s.is("cancel changes the finished") {
				r.state = "cancelled"
			}
		case r.state == "cancelled" && s.is("cancel repeat finished"):
			fates = append(fates, core.Finished)
		default:
			if r.live() {
				r.wasRunning = r.heldAt(call.Now)
				if s.is("cancel by state alone") {
					r.wasRunning = r.state == "running"
				}
				if !(r.wasRunning && s.is("cancel leaves the running") || s.is("cancel leaves the pending")) {
					s.gap("cancel checks, then writes")
					s.finish(id, r, "cancelled", call.Now)
				}
			}
			fates = append(fates, map[bool]core.Fate{false: core.Cancelled, true: core.WasRunning}[r.wasRunning])
		}
	}
	return fates, core.NewBatchError(busy)
}

// Reschedule implements core.Store.
func (s *Store) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	if err := s.enterBy(ctx, "reschedule", call.By, len(moves)); err != nil {
		return unless(s.hides(len(moves)), err)
	}
	s.across("reschedule without the queue", func(other *Store) { _ = other.Reschedule(ctx, call, moves) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is("batch cut at 1,000") {
		moves = moves[:min(len(moves), 1000)]
	}
	var failed []core.ItemError
	for i, m := range moves {
		if s.is("reschedule stops at a failure") && len(failed) > 0 {
			break
		}
		r := s.row(m.ID)
		if s.is("reschedule ignores case") && r == nil {
			r = s.anyCase(m.ID)
		}
		switch {
		case s.lockedFor(m.ID):
			failed = append(failed, core.ItemError{Index: i, ID: m.ID, Err: core.ErrBusy})
		case r == nil, r.state != "pending" && !(r.state == "running" && s.is("reschedule moves the running")):
			failed = append(failed, core.ItemError{Index: i, ID: m.ID, Err: core.ErrNotPending})
		case r.due.Equal(m.To) && !s.is("reschedule repeat moved"):
		case !m.From.IsZero() && !r.due.Equal(m.From) && !s.is("reschedule ignores From") && !(s.is("1970 is any time") && m.From.UnixMilli() == 0):
			failed = append(failed, core.ItemError{Index: i, ID: m.ID, Err: core.ErrMoved})
		default:
			s.gap("reschedule checks, then writes")
			r.due = s.time(m.To)
			if !s.is("reschedule keeps Task.Due") {
				r.task.Due = r.due
			}
		}
	}
	return core.NewBatchError(s.misplaced(failed))
}

package claim

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Memory is a [core.Store] in the process: the reference that says in plain Go
// what the SQL adapters say in SQL, and a test double for users' own tests. It
// keeps nothing on disk. It is safe for concurrent use; a call is atomic, so
// there is never a row locked by somebody, and no ErrBusy or Refused. Two
// schedulers share the tasks when they share the pointer.
//
// Memory is no [core.TimeSource]: schedulers on it go by the process clock or by
// the now that is passed to Tick, so tests with testing/synctest or with times
// of their own work. It starts no goroutine. What it reads the process clock for is
// whether a call comes after its By; see MemoryOptions.Now.
//
// Like every adapter it takes tasks as core passes them and doesn't check them.
type Memory struct {
	options MemoryOptions

	mu       sync.Mutex
	token    int64 // the highest that was given
	tasks    map[core.ID]*MemoryTask
	live     order // pending and running, by due time
	finished order // done and cancelled, by the time when they were
}

var (
	_ core.Store  = (*Memory)(nil)
	_ core.Purger = (*Memory)(nil)
)

// MemoryOptions are the options of a Memory; the zero value is fine.
type MemoryOptions struct {
	// DeleteFinished deletes a task at once when it is done or cancelled, instead
	// of keeping it for Purge. A repeat after a lost reply then can't recognise
	// it; see the methods of [core.Store]. Dead tasks are kept anyhow.
	DeleteFinished bool
	// Now is the clock that a call's By (see [core.Call]) is compared with. Set it
	// where the schedulers go by another clock than the process's: by a TimeSource
	// around the Memory. Nil: time.Now.
	Now func() time.Time
}

// MemoryTask is a task as a Memory keeps it: a row of the managed table (see the
// package comment). Times are milliseconds since 1970.
type MemoryTask struct {
	Row
	LastError  string // the text of the last failure
	CreatedAt  int64  // Call.Now of the Insert
	FinishedAt int64  // when it became done, dead or cancelled, else 0
}

// NewMemory returns an empty Memory.
func NewMemory(options MemoryOptions) *Memory {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Memory{options: options, tasks: map[core.ID]*MemoryTask{}}
}

// Task returns a copy of the task id, also of one that is finished; ok is false
// when there is none.
func (m *Memory) Task(id core.ID) (task MemoryTask, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[id]
	if !ok {
		return MemoryTask{}, false
	}
	return t.clone(), true
}

// All yields a copy of each task, also of finished ones, ordered by the bytes of
// the id. It shows the state of one instant, at the start of the iteration; the
// loop may call any method of m.
func (m *Memory) All() iter.Seq[MemoryTask] {
	return func(yield func(MemoryTask) bool) {
		m.mu.Lock()
		all := make([]MemoryTask, 0, len(m.tasks))
		for _, id := range slices.Sorted(maps.Keys(m.tasks)) {
			all = append(all, m.tasks[id].clone())
		}
		m.mu.Unlock()
		for _, t := range all {
			if !yield(t) {
				return
			}
		}
	}
}

// Waiting implements [core.Claimer].
func (m *Memory) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := done(ctx, "waiting"); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var entries []core.Entry
	for at := range m.live.after(stamp{after.Due.UnixMilli(), after.ID}) {
		if at.ms >= ceil(before) {
			break
		}
		if t := m.tasks[at.id]; t.Status == Running && t.LeaseUntil >= now.UnixMilli() {
			continue
		}
		entries = append(entries, core.Entry{ID: at.id, Due: Time(at.ms)})
		if len(entries) == limit {
			break
		}
	}
	return entries, nil
}

// Purge implements [core.Purger].
func (m *Memory) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := done(ctx, "purge"); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var old []core.ID
	for at := range m.finished.after(stamp{}) {
		if len(old) >= limit || at.ms >= ceil(before) {
			break
		}
		old = append(old, at.id)
	}
	for _, id := range old {
		m.drop(m.tasks[id])
	}
	return len(old), nil
}

// change applies a transition to t and keeps the two orders in step. Whatever
// ends a task, or writes a due time or FinishedAt, goes through it.
func (m *Memory) change(t *MemoryTask, transition func()) {
	from, was := m.place(t)
	transition()
	to, is := m.place(t)
	if from == to && was == is {
		return
	}
	from.remove(was)
	to.add(is)
}

// forget drops a task that is done or cancelled, where such ones aren't kept.
func (m *Memory) forget(t *MemoryTask) {
	if m.options.DeleteFinished {
		m.drop(t)
	}
}

// put stores t, in the place of an earlier task of that id.
func (m *Memory) put(t *MemoryTask) {
	if old, ok := m.tasks[t.ID]; ok {
		m.drop(old)
	}
	m.tasks[t.ID] = t
	o, at := m.place(t)
	o.add(at)
}

func (m *Memory) drop(t *MemoryTask) {
	o, at := m.place(t)
	o.remove(at)
	delete(m.tasks, t.ID)
}

// place says in which order t stands, and where. Dead tasks, which nobody looks
// for, and those that are about to be forgotten stand in none: nil.
func (m *Memory) place(t *MemoryTask) (*order, stamp) {
	switch {
	case t.Status.Live():
		return &m.live, stamp{t.Due, t.ID}
	case t.Status != DeadState && !m.options.DeleteFinished:
		return &m.finished, stamp{t.FinishedAt, t.ID}
	default:
		return nil, stamp{}
	}
}

// clone returns a copy that shares no memory with t.
func (t *MemoryTask) clone() MemoryTask {
	c := *t
	c.Payload, c.Meta = bytes.Clone(t.Payload), bytes.Clone(t.Meta)
	return c
}

// late is core.ErrNotDone when the clock is past by. The caller holds the lock.
func (m *Memory) late(by time.Time, call string) error {
	if by.IsZero() || !m.options.Now().After(by) {
		return nil
	}
	return fmt.Errorf("claim: memory: %s: %w: it came after its caller had given it up", call, core.ErrNotDone)
}

func done(ctx context.Context, call string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("claim: memory: %s: %w", call, err)
	}
	return nil
}

// ceil is t in milliseconds, rounded up, as core.CeilMilli rounds: core does so
// already, this is for users who call a Memory directly. Instants to compare
// with are rounded down, which is what UnixMilli does.
func ceil(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}

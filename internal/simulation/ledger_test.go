package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// grace is how long after its end others leave a lease alone.
const grace = 2 * time.Second

// ahead is Options.Ahead of all schedulers: its default.
const ahead = 50 * time.Millisecond

// ledger is the oracle: the one way to the store. It compares the rows before and
// after each call and judges the change by rules of its own.
type ledger struct {
	w   *world
	mem *claim.Memory

	mu     sync.Mutex
	ids    map[core.ID]*story
	grants map[ticket]*grant
}

// story is what is known about an id over all its lives.
type story struct {
	lives []*life
	token int64 // highest that was granted
}

// life is a task from its insertion to its end.
type life struct {
	n                                  int
	call                               string
	grants, released, crashes, retries int
	dones                              int
	ended                              bool
	cancelled                          bool // and nobody held it: it must never start
}

type ticket struct {
	id    core.ID
	token int64
}

type grant struct {
	holder  string
	life    *life
	at      time.Time // bubble time
	started bool
	done    bool // completed under it
}

func newLedger(w *world, opt claim.MemoryOptions) *ledger {
	opt.Now = w.clock.now
	return &ledger{w: w, mem: claim.NewMemory(opt), ids: map[core.ID]*story{}, grants: map[ticket]*grant{}}
}

// the caller holds the lock.
func (l *ledger) life(id core.ID) *life {
	s := l.ids[id]
	if s == nil || len(s.lives) == 0 {
		return nil
	}
	return s.lives[len(s.lives)-1]
}

func (l *ledger) rows(ids []core.ID) []claim.MemoryTask {
	rows := make([]claim.MemoryTask, len(ids))
	for i, id := range ids {
		rows[i], _ = l.mem.Task(id)
	}
	return rows
}

// open returns the ids of the tasks that are still live.
func (l *ledger) open() (ids []core.ID) {
	for t := range l.mem.All() {
		if t.Status.Live() {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

func (l *ledger) Now(context.Context) (time.Time, error) { return l.w.clock.now(), nil }

func (l *ledger) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]core.ID, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	before := l.rows(ids)
	err := l.mem.Insert(ctx, call, tasks)
	refused, known := items(err)
	for i, after := range l.rows(ids) {
		made := after.CallID == call.ID && before[i].CallID != call.ID
		if made {
			if before[i].Status.Live() {
				l.w.fail(ids[i], "a live task was replaced by an insertion")
			}
			s := l.ids[ids[i]]
			if s == nil {
				s = &story{}
				l.ids[ids[i]] = s
			}
			s.lives = append(s.lives, &life{n: len(s.lives) + 1, call: call.ID})
			l.w.note(ids[i], "inserted", after.Token, call.ID)
		}
		if known && refused[i] == nil && !made && before[i].CallID != call.ID {
			l.w.fail(ids[i], "an insertion was acknowledged and nothing stored")
		}
	}
	return err
}

func (l *ledger) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.rows(ids)
	got, err := l.mem.Claim(ctx, ids, lease)
	if err != nil {
		return got, err
	}
	now, slack := l.w.clock.now(), l.w.clock.slack()
	for i, after := range l.rows(ids) {
		id, b := ids[i], before[i]
		if c := got[i]; c.Verdict == core.Granted && (after.Token != c.Grant.Token || after.Holder != c.Grant.Holder || c.Grant.Holder != lease.Holder) {
			l.w.fail(id, "a grant that isn't the row's")
		}
		if after.Token == b.Token && after.Holder == b.Holder && after.Status == b.Status {
			continue
		}
		s, life := l.ids[id], l.life(id)
		l.w.note(id, "granted", after.Token, lease.Holder)
		if life == nil || life.ended {
			l.w.fail(id, "granted after its end")
			continue
		}
		if after.Token <= s.token {
			l.w.fail(id, "token %d granted after %d", after.Token, s.token)
		}
		s.token = max(s.token, after.Token)
		t := ticket{id, after.Token}
		if old := l.grants[t]; old != nil {
			l.w.fail(id, "token %d granted to %s and to %s", after.Token, old.holder, lease.Holder)
		}
		l.grants[t] = &grant{holder: lease.Holder, life: life, at: time.Now()}
		life.grants++
		if b.Status == claim.Running {
			life.crashes++
			l.w.count(takeOver)
			if end := claim.Time(b.LeaseUntil).Add(grace); end.After(now.Add(slack)) {
				l.w.fail(id, "token %d: taken over %v before the lease of %s and the grace were over", after.Token, end.Sub(now), b.Holder)
			}
		}
		if due := claim.Time(b.Due); due.After(now.Add(ahead + slack)) {
			l.w.fail(id, "granted %v before it is due", due.Sub(now))
		}
		if after.Attempts != life.grants-life.released || after.Crashes != life.crashes {
			l.w.fail(id, "the row has %d attempts and %d crashes; there were %d grants, %d given back, %d lapsed",
				after.Attempts, after.Crashes, life.grants, life.released, life.crashes)
		}
	}
	return got, err
}

func (l *ledger) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.rows(idsOf(grants))
	err := l.mem.Extend(ctx, grants, until)
	refused, known := items(err)
	for i, after := range l.rows(idsOf(grants)) {
		g, b := grants[i], before[i]
		holds := b.Status == claim.Running && b.Token == g.Token && b.Holder == g.Holder
		switch {
		case !holds && after.LeaseUntil != b.LeaseUntil:
			l.w.fail(g.ID, "a lease was extended by somebody else")
		case after.LeaseUntil < b.LeaseUntil:
			l.w.fail(g.ID, "a lease was shortened")
		case known && holds != (refused[i] == nil):
			l.w.fail(g.ID, "extension of token %d answered %v, held: %v", g.Token, refused[i], holds)
		}
	}
	return err
}

func (l *ledger) Settle(ctx context.Context, now time.Time, list []core.Settlement) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]core.ID, len(list))
	for i := range list {
		ids[i] = list[i].Grant.ID
	}
	before := l.rows(ids)
	err := l.mem.Settle(ctx, now, list)
	refused, known := items(err)
	if !known {
		return err
	}
	for i := range list {
		l.settled(&list[i], &before[i], refused[i])
	}
	return err
}

func (l *ledger) settled(s *core.Settlement, b *claim.MemoryTask, refused error) {
	g := s.Grant
	newest := b.Token == g.Token && b.Holder == g.Holder
	holds := newest && b.Status == claim.Running
	after, _ := l.mem.Task(g.ID)
	same := after.Status == b.Status && after.Token == b.Token && after.Due == b.Due && after.Attempts == b.Attempts
	switch {
	case !holds && !same:
		l.w.fail(g.ID, "a settlement of token %d changed a row that it doesn't hold", g.Token)
	case refused == nil && !newest:
		l.w.fail(g.ID, "a settlement of token %d was accepted, the row has %d", g.Token, b.Token)
	case refused != nil:
		if errors.Is(refused, core.ErrLeaseLost) {
			l.w.count(refusedSettlement)
		}
		if holds {
			l.w.fail(g.ID, "the holder's settlement of token %d was refused: %v", g.Token, refused)
		}
	}
	if !holds || refused != nil {
		return
	}
	l.w.note(g.ID, "settled: "+s.Outcome.String(), g.Token, s.Err)
	life := l.life(g.ID)
	switch s.Outcome {
	case core.Done:
		life.ended = true
		l.grants[ticket{g.ID, g.Token}].done = true
		if life.dones++; life.dones > 1 {
			l.w.fail(g.ID, "completed %d times", life.dones)
		}
	case core.DeadLetter:
		life.ended = true
	case core.Retry:
		life.retries++
	case core.Released:
		life.released++
	}
	if _, kept := l.mem.Task(g.ID); kept && after.Attempts != life.grants-life.released {
		l.w.fail(g.ID, "the row has %d attempts; there were %d grants, %d given back", after.Attempts, life.grants, life.released)
	}
}

func (l *ledger) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.rows(ids)
	fates, err := l.mem.Cancel(ctx, call, ids)
	if err != nil {
		return fates, err
	}
	for i, id := range ids {
		if !before[i].Status.Live() {
			continue
		}
		life := l.life(id)
		life.ended = true
		life.cancelled = fates[i] == core.Cancelled && l.w.clock.slack() == 0
		l.w.note(id, "cancelled: "+fates[i].String(), before[i].Token, "")
	}
	return fates, nil
}

func (l *ledger) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mem.Reschedule(ctx, call, moves)
}

func (l *ledger) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	return l.mem.Waiting(ctx, now, after, before, limit)
}

func (l *ledger) Purge(ctx context.Context, before time.Time, limit int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mem.Purge(ctx, before, limit)
}

// start judges the start of a handler.
func (l *ledger) start(job *core.Job) *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := job.Grant.ID
	g := l.grants[ticket{id, job.Grant.Token}]
	if g == nil || g.holder != job.Grant.Holder {
		l.w.fail(id, "started under token %d, which the store didn't grant to %s", job.Grant.Token, job.Grant.Holder)
		return nil
	}
	if g.started {
		l.w.fail(id, "started twice under token %d", job.Grant.Token)
	}
	g.started = true
	if now := l.w.clock.now(); job.Task.Due.After(now.Add(l.w.clock.slack())) {
		l.w.fail(id, "started %v early", job.Task.Due.Sub(now))
	}
	if g.life.cancelled {
		l.w.fail(id, "started under token %d after it was cancelled", job.Grant.Token)
	}
	return g.life
}

// told judges what a scheduler says of a settlement.
func (l *ledger) told(s core.Settlement, err error) {
	if err != nil || s.Outcome != core.Done {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.grants[ticket{s.Grant.ID, s.Grant.Token}]; g == nil || !g.done {
		l.w.fail(s.Grant.ID, "the completion of token %d is said to be recorded, and isn't", s.Grant.Token)
	}
}

// items returns the errors by item; known is false where the outcome is unknown.
func items(err error) (by map[int]error, known bool) {
	if err == nil {
		return nil, true
	}
	var batch *core.BatchError
	if !errors.As(err, &batch) {
		return nil, false
	}
	by = make(map[int]error, len(batch.Items))
	for _, item := range batch.Items {
		by[item.Index] = item.Err
	}
	return by, true
}

func idsOf(grants []core.Grant) []core.ID {
	ids := make([]core.ID, len(grants))
	for i, g := range grants {
		ids[i] = g.ID
	}
	return ids
}

package history

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"pgregory.net/rapid"
)

// callNow draws the Call.Now of an Insert: what a producer takes for the time may step
// back, and tokens rise all the same.
func (s *storeRun) callNow(t *rapid.T) time.Time {
	s.clock++
	if chance(t, "clock steps back", 4) {
		return s.base
	}
	return s.base.Add(time.Duration(s.clock) * time.Hour)
}

var (
	kinds    = []string{"", "mail", "Mail", "mail "}
	payloads = []string{"", "payload", "\x00a\x00", "'\"\\%\xff"}
)

func (s *storeRun) tasks(t *rapid.T, ids []core.ID) []core.Task {
	tasks := []core.Task{}
	for _, id := range some(t, "ids", ids, rapid.ID[core.ID]) {
		tasks = append(tasks, core.Task{
			ID: id, Kind: pick(t, "kind", kinds), Payload: []byte(pick(t, "payload", payloads)), Meta: []byte(pick(t, "meta", payloads)),
			Due: s.due(t), MaxAttempts: rapid.IntRange(0, 2).Draw(t, "max attempts"),
		})
	}
	return tasks
}

func cloneTasks(tasks []core.Task) []core.Task {
	clone := slices.Clone(tasks)
	for i := range clone {
		clone[i].Payload, clone[i].Meta = bytes.Clone(clone[i].Payload), bytes.Clone(clone[i].Meta)
	}
	return clone
}

// scribble writes over what a task's sender or receiver may write to.
func scribble(task core.Task) {
	for _, b := range [][]byte{task.Payload, task.Meta} {
		for i := range b {
			b[i] = '!'
		}
	}
}

func (s *storeRun) insertNew(t *rapid.T) {
	at, c := s.at(t), insertCall{id: s.unique("c", "C"), now: s.callNow(t), tasks: s.tasks(t, s.ids)}
	s.do(func(s *storeRun) { s.insert(at, c, false) })
}

// insertAgain repeats a call, some with a later Now.
func (s *storeRun) insertAgain(t *rapid.T) {
	if len(s.calls) == 0 {
		return
	}
	at, c := s.at(t), pick(t, "call", s.calls)
	if chance(t, "later", 2) {
		s.clock++
		c.now = s.base.Add(time.Duration(s.clock) * time.Hour)
	}
	s.do(func(s *storeRun) { s.insert(at, c, true) })
}

func (s *storeRun) insert(at place, c insertCall, again bool) {
	ctx, call := at.ctx, core.Call{ID: c.id, Now: c.now}
	if ctx.Err() == nil && !again {
		s.calls = append(s.calls, c)
	}
	s.step("%s: Insert%s(call %s, now %s, %s)", at, showDone(ctx), call.ID, stamp(call.Now), list(c.tasks, showTask))
	arg := cloneTasks(c.tasks)
	got := s.handles[at.handle].(core.Store).Insert(ctx, call, arg)
	unchanged(s.record, c.tasks, arg, showTask)
	for _, task := range arg {
		scribble(task)
	}
	if s.refused(ctx, got, len(c.tasks)) {
		return
	}
	s.sameRefusals(s.right.Insert(ctx, call, cloneTasks(c.tasks)), got)
}

// put makes rows of tasks in the way of a Claimer's users.
func (s *storeRun) put(t *rapid.T) {
	ids := slices.DeleteFunc(slices.Clone(s.ids), func(id core.ID) bool { return s.putIDs[id] })
	tasks := s.tasks(t, ids)
	if len(tasks) == 0 {
		return
	}
	for _, task := range tasks {
		s.putIDs[task.ID] = true
	}
	call := core.Call{ID: s.unique("c", "C"), Now: s.base}
	s.do(func(s *storeRun) {
		s.step("Put(%s)", list(tasks, showTask))
		s.putNew(cloneTasks(tasks))
		if err := s.right.Insert(s.t.Context(), call, cloneTasks(tasks)); err != nil {
			s.fail("the right store: %v", err)
		}
	})
}

func (s *storeRun) cancel(t *rapid.T) {
	at, now, ids := s.at(t), s.now(t), some(t, "ids", s.ids, rapid.ID)
	s.do(func(s *storeRun) { s.cancelAll(at, now, ids) })
}

func (s *storeRun) cancelAll(at place, now time.Time, ids []core.ID) {
	ctx := at.ctx
	s.step("%s: Cancel%s(now %s, %s)", at, showDone(ctx), stamp(now), list(ids, showID))
	arg := slices.Clone(ids)
	got, err := s.handles[at.handle].(core.Store).Cancel(ctx, core.Call{Now: now}, arg)
	unchanged(s.record, ids, arg, showID)
	if s.refused(ctx, err, len(ids)) {
		return
	}
	s.mustNot(err)
	want, _ := s.right.Cancel(ctx, core.Call{Now: now}, ids)
	same(s.record, "fates", want, got, showFate)
}

func (s *storeRun) reschedule(t *rapid.T) {
	at := s.at(t)
	var moves []core.Move
	waiting, _ := s.right.Waiting(context.Background(), endOfTime, core.Entry{}, endOfTime, 100)
	for _, id := range some(t, "ids", s.ids, rapid.ID) {
		m := core.Move{ID: id, To: s.due(t)}
		is := slices.IndexFunc(waiting, func(e core.Entry) bool { return e.ID == id })
		switch from := rapid.IntRange(0, 3).Draw(t, "from"); {
		case from == 1:
			m.From = s.due(t)
		case from > 1 && is >= 0:
			m.From = waiting[is].Due
		}
		moves = append(moves, m)
	}
	now := s.now(t)
	s.do(func(s *storeRun) { s.rescheduleAll(at, now, moves) })
}

func (s *storeRun) rescheduleAll(at place, now time.Time, moves []core.Move) {
	ctx := at.ctx
	s.step("%s: Reschedule%s(now %s, %s)", at, showDone(ctx), stamp(now), list(moves, showMove))
	arg := slices.Clone(moves)
	got := s.handles[at.handle].(core.Store).Reschedule(ctx, core.Call{Now: now}, arg)
	unchanged(s.record, moves, arg, showMove)
	if s.refused(ctx, got, len(moves)) {
		return
	}
	s.sameRefusals(s.right.Reschedule(ctx, core.Call{Now: now}, moves), got)
	for _, m := range moves {
		s.rescheduled[m.ID] = true
	}
}

// purge deletes all that may go, some at a time. Free: which rows go first.
func (s *storeRun) purge(t *rapid.T) {
	at, before, limit := s.at(t), s.now(t), rapid.IntRange(1, 7).Draw(t, "limit")
	s.do(func(s *storeRun) { s.purgeAll(at, before, limit) })
}

func (s *storeRun) purgeAll(at place, before time.Time, limit int) {
	ctx, h := at.ctx, s.handles[at.handle]
	if ctx.Err() != nil {
		s.step("%s: Purge with a ctx that is done", at)
		_, err := h.(core.Purger).Purge(ctx, before, limit)
		s.refused(ctx, err, 1)
		return
	}
	left, _ := s.right.Purge(ctx, before, 1_000)
	for ends := false; !ends; {
		s.step("%s: Purge(before %s, %d)", at, stamp(before), limit)
		got, err := h.(core.Purger).Purge(ctx, before, limit)
		s.mustNot(err)
		if want := min(limit, left); got != want {
			s.fail("rows purged: got %d, want %d", got, want)
		}
		ends = left == 0
		left -= got
	}
}

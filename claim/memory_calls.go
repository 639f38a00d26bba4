package claim

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Insert implements [core.Store].
func (m *Memory) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if err := done(ctx, "insert"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.late(call.By, "insert"); err != nil {
		return err
	}
	var failed []core.ItemError
	for i := range tasks {
		if err := m.insert(call, &tasks[i]); err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: tasks[i].ID, Err: err})
		}
	}
	return core.NewBatchError(failed)
}

func (m *Memory) insert(call core.Call, task *core.Task) error {
	if old, ok := m.tasks[task.ID]; ok && (old.Status.Live() || old.CallID == call.ID) {
		return old.Inserted(call)
	}
	m.token = max(m.token+1, call.Now.UnixMicro())
	due := ceil(task.Due)
	m.put(&MemoryTask{
		Row: Row{
			ID: task.ID, Status: Pending, Due: due, Planned: due, Token: m.token,
			MaxAttempts: task.MaxAttempts, Kind: task.Kind,
			Payload: bytes.Clone(task.Payload), Meta: bytes.Clone(task.Meta),
			CallID: call.ID,
		},
		CreatedAt: call.Now.UnixMilli(),
	})
	return nil
}

// Claim implements [core.Claimer].
func (m *Memory) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if err := done(ctx, "claim"); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.late(lease.By, "claim"); err != nil {
		return nil, err
	}
	claimed := make([]core.Claimed, len(ids))
	for i, id := range ids {
		claimed[i] = m.claim(id, lease)
	}
	return claimed, nil
}

func (m *Memory) claim(id core.ID, lease core.Lease) core.Claimed {
	t, ok := m.tasks[id]
	if !ok {
		return Gone(id)
	}
	t.Claim(lease) // it leaves the due time, and a live task live
	m.token = max(m.token, t.Token)
	c := t.Claimed(lease)
	c.Task.Payload, c.Task.Meta = bytes.Clone(c.Task.Payload), bytes.Clone(c.Task.Meta)
	return c
}

// Extend implements [core.Claimer].
func (m *Memory) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if err := done(ctx, "extend"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed []core.ItemError
	for i, g := range grants {
		if t, ok := m.tasks[g.ID]; !ok || !t.Extend(g, until) {
			failed = append(failed, core.ItemError{Index: i, ID: g.ID, Err: core.ErrLeaseLost})
		}
	}
	return core.NewBatchError(failed)
}

// Settle implements [core.Claimer].
func (m *Memory) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if err := done(ctx, "settle"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed []core.ItemError
	for i := range settlements {
		if err := m.settle(now, &settlements[i]); err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: settlements[i].Grant.ID, Err: err})
		}
	}
	return core.NewBatchError(failed)
}

func (m *Memory) settle(now time.Time, s *core.Settlement) error {
	t, ok := m.tasks[s.Grant.ID]
	if !ok {
		return core.ErrLeaseLost
	}
	var held bool
	m.change(t, func() {
		if held = t.Settle(*s); held && !t.Status.Live() {
			t.FinishedAt = now.UnixMilli()
		}
	})
	if !held {
		err := t.Settled(s.Grant)
		if errors.Is(err, core.ErrBusy) { // no row is ever locked here: there is no such outcome
			err = core.ErrInvalid
		}
		return err
	}
	switch s.Outcome {
	case core.Retry, core.DeadLetter:
		t.LastError = s.Err
	case core.Done:
		m.forget(t)
	}
	return nil
}

// Cancel implements [core.Store].
func (m *Memory) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	if err := done(ctx, "cancel"); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.late(call.By, "cancel"); err != nil {
		return nil, err
	}
	fates := make([]core.Fate, len(ids))
	for i, id := range ids {
		fates[i] = m.cancel(call.Now, id)
	}
	return fates, nil
}

func (m *Memory) cancel(now time.Time, id core.ID) core.Fate {
	t, ok := m.tasks[id]
	if !ok {
		return core.Unknown
	}
	if t.Status.Live() {
		if t.Status == Pending || t.LeaseUntil < now.UnixMilli() {
			t.LeaseUntil = 0
		}
		m.change(t, func() { t.Status, t.Due, t.FinishedAt = Cancelled, 0, now.UnixMilli() })
		m.forget(t)
	}
	fate, _ := t.Fate()
	return fate
}

// Reschedule implements [core.Store].
func (m *Memory) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	if err := done(ctx, "reschedule"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.late(call.By, "reschedule"); err != nil {
		return err
	}
	var failed []core.ItemError
	for i, move := range moves {
		if err := m.reschedule(move); err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: move.ID, Err: err})
		}
	}
	return core.NewBatchError(failed)
}

func (m *Memory) reschedule(move core.Move) error {
	t, ok := m.tasks[move.ID]
	if !ok {
		return core.ErrNotPending
	}
	to := ceil(move.To)
	if t.Status == Pending && t.Due != to && (move.From.IsZero() || t.Due == ceil(move.From)) {
		m.change(t, func() { t.Due, t.Planned = to, to })
		return nil
	}
	return t.Rescheduled(core.Move{ID: move.ID, From: move.From, To: Time(to)})
}

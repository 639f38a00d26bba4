package core_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// stepStore is a Claimer on rows of the user's own, whose handlers' steps complete
// them: a claim only reads, so rows in hand and in a back-off look due.
type stepStore struct {
	mu     sync.Mutex
	rows   map[core.ID]*step
	tokens int64
	claims int
	ends   []core.Settlement // accepted
}

type step struct {
	due        time.Time
	done, dead bool
}

func (s *stepStore) Undated() bool { return true }

// NoAhead: no column of it holds a back-off.
func (s *stepStore) NoAhead() bool { return true }

func (s *stepStore) CheckID(id core.ID) error {
	if strings.HasPrefix(string(id), "0") {
		return fmt.Errorf("id %q has a leading zero", id)
	}
	return nil
}

func (s *stepStore) put(due time.Time, ids ...core.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[core.ID]*step{}
	}
	for _, id := range ids {
		s.rows[id] = &step{due: core.CeilMilli(due)}
	}
}

// do makes the step of a row.
func (s *stepStore) do(id core.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id].done = true
}

func (s *stepStore) claimed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims
}

func (s *stepStore) settled() []core.Settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ends)
}

func (s *stepStore) Claim(_ context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims += len(ids)
	var all []core.Claimed
	for _, id := range ids {
		c := core.Claimed{ID: id, Verdict: core.Granted, At: lease.Until}
		row := s.rows[id]
		switch err := s.CheckID(id); {
		case err != nil:
			c.Verdict, c.Err = core.Refused, err
		case row == nil || row.done || row.dead:
			c.Verdict = core.Gone
		case row.due.After(lease.DueBy):
			c.Verdict, c.At = core.NotDue, row.due
		default:
			s.tokens++
			c.Task = core.Task{ID: id, Due: row.due}
			c.Grant = core.Grant{ID: id, Token: s.tokens, Holder: lease.Holder}
		}
		all = append(all, c)
	}
	return all, nil
}

func (s *stepStore) Extend(context.Context, []core.Grant, time.Time) error { return nil }

func (s *stepStore) Settle(_ context.Context, _ time.Time, list []core.Settlement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []core.ItemError
	for i, x := range list {
		row := s.rows[x.Grant.ID]
		if x.Outcome == core.Done && !row.done {
			failed = append(failed, core.ItemError{Index: i, ID: x.Grant.ID, Err: fmt.Errorf("order %s is still open: %w", x.Grant.ID, core.ErrUnfinished)})
			continue
		}
		row.dead = x.Outcome == core.DeadLetter
		s.ends = append(s.ends, x)
	}
	return core.NewBatchError(failed)
}

func (s *stepStore) Waiting(_ context.Context, _ time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := func(a, b core.Entry) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) }
	var rows []core.Entry
	for id, row := range s.rows {
		e := core.Entry{ID: id, Due: row.due}
		if !row.done && !row.dead && row.due.Before(before) && order(e, after) > 0 {
			rows = append(rows, e)
		}
	}
	slices.SortFunc(rows, order)
	return rows[:min(limit, len(rows))], nil
}

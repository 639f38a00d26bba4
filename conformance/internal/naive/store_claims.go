package naive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Claim implements core.Claimer.
func (s *Store) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if err := s.enterBy(ctx, "claim", lease.By, len(ids)); err != nil {
		if s.is("broken claim is Gone") && errors.Is(err, errAway) {
			return s.allGone(ids), nil
		}
		return nil, err
	}
	s.across("claim without the queue", func(other *Store) { _, _ = other.Claim(ctx, ids, lease) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []core.Claimed
	for _, id := range ids {
		got = append(got, s.claim(id, lease))
	}
	if s.is("verdicts sorted") {
		slices.SortFunc(got, func(a, b core.Claimed) int { return cmp.Compare(a.ID, b.ID) })
	}
	return got, nil
}

func (s *Store) claim(id core.ID, lease core.Lease) core.Claimed {
	r := s.row(id)
	dueBy := lease.DueBy
	if s.is("claim by Now, not DueBy") {
		dueBy = lease.Now
	}
	now := lease.Now
	if s.is("take-over by DueBy") {
		now = lease.DueBy
	}
	if s.is("take-over by a clock") {
		now = time.Now()
	}
	if s.is("leases ignored") {
		now = endOfDays
	}
	switch {
	case s.lockedFor(id):
		return core.Claimed{ID: id, Verdict: core.Refused}
	case r == nil || !r.live() && !s.is("status not in the WHERE") && !(s.is("cancelled is claimed by its holder") && r.holder == lease.Holder):
		return core.Claimed{ID: id, Verdict: core.Gone}
	case s.is("settled grant comes back") && r.holder == lease.Holder && r.attempts > 0:
		r.state = "running"
	case r.state == "running" && s.sameHolder(r.holder, lease.Holder) && !s.is("claim repeat unknown"):
	case r.heldAt(now) && !(s.is("lease stolen at its end") && r.until.Equal(now)):
		at := r.until
		if s.is("held at now") {
			at = lease.Now
		}
		return core.Claimed{ID: id, Verdict: core.Held, At: at}
	case r.due.After(dueBy) && !s.is("claim ignores due"):
		return core.Claimed{ID: id, Verdict: core.NotDue, At: r.due}
	default:
		s.gap("claim checks, then writes")
		if r.state == "running" {
			s.gap("rescue by id alone")
		}
		if r.state == "running" && !s.is("crashes not counted") {
			r.crashes++
		}
		if r.state != "running" || !s.is("take-over keeps token") {
			r.token++
			s.tokens.saw(r.token)
		}
		r.state, r.holder, r.until = "running", lease.Holder, s.leaseEnd(lease.Until)
		r.attempts++
	}
	c := core.Claimed{
		ID: id, Verdict: core.Granted, At: r.until, Task: r.task, Attempt: r.attempts, Crashes: r.crashes,
		Grant: core.Grant{ID: id, Token: r.token, Holder: r.holder}, NotBefore: r.due,
	}
	if s.is("NotBefore is Task.Due") {
		c.NotBefore = r.task.Due
	}
	if !s.shares(r.task.Payload) {
		c.Task.Payload, c.Task.Meta = bytes.Clone(r.task.Payload), bytes.Clone(r.task.Meta)
	}
	return c
}

var endOfDays = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// shares tells whether the bug is to keep or hand out these very bytes.
func (s *Store) shares(payload []byte) bool {
	return s.is("payload shared") || s.is("long payloads shared") && len(payload) > 256
}

func (s *Store) holds(r *row, g core.Grant) bool {
	return r != nil && (r.token == g.Token || s.is("token ignored")) &&
		(r.holder == g.Holder || s.is("holder ignored") || s.is("token ignored") || s.is("holders ignore case") && strings.EqualFold(r.holder, g.Holder))
}

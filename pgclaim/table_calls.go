package pgclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.Claimer    = (*Table)(nil)
	_ core.TimeSource = (*Table)(nil)
	_ core.Undated    = (*Table)(nil)
	_ core.NoAhead    = (*Table)(nil)
	_ core.IDChecker  = (*Table)(nil)
	_ core.FixedLease = (*Table)(nil)
	_ core.Prober     = (*Table)(nil)
)

// Claim implements core.Claimer, in one round trip when every id is granted and
// two otherwise, as in mode claim.StatusUpdated, which always reads back what it wrote; in
// mode claim.Transition it only reads. A row that is locked is
// Refused.
func (t *Table) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	claimed, err := t.engine.Claim(ctx, tableConn{table: t}, ids, lease)
	return claimed, t.fail("claim", err)
}

// Extend implements core.Claimer. A locked row fails with core.ErrBusy.
func (t *Table) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return t.fail("extend", t.engine.Extend(ctx, tableConn{table: t}, grants, until))
}

// Settle implements core.Claimer: a statement for each outcome. A locked row fails
// with core.ErrBusy.
func (t *Table) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return t.fail("settle", t.engine.Settle(ctx, tableConn{table: t}, now, settlements))
}

// Waiting implements core.Claimer. It wants the index that Verify asks for.
func (t *Table) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	entries, err := t.engine.Waiting(ctx, tableConn{table: t}, now, after, before, limit)
	return entries, t.fail("waiting", err)
}

// Now implements core.TimeSource: the server's clock, to the microsecond, when
// the statement arrived there.
func (t *Table) Now(ctx context.Context) (time.Time, error) {
	now, err := t.now(ctx)
	return now, t.fail("now", err)
}

// Undated implements core.Undated: it tells whether the index alone holds
// back-offs.
func (t *Table) Undated() bool { return t.engine.Undated() }

// NoAhead implements core.NoAhead: it tells whether a row's back-off may stand where a
// grant can't tell it.
func (t *Table) NoAhead() bool { return t.engine.NoAhead() }

// CheckID implements core.IDChecker.
func (t *Table) CheckID(id core.ID) error { return t.engine.CheckID(id) }

// LeaseFor implements core.FixedLease: the length of the table's leases in mode
// StatusUpdated, else 0.
func (t *Table) LeaseFor() time.Duration { return t.def.LeaseFor }

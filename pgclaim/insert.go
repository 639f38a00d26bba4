package pgclaim

import (
	"context"
	"fmt"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// insertSQL stores what has no row, and locks none that is there.
var insertSQL = by("$10", `
INSERT INTO {table} AS t (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at)
{given}
ON CONFLICT (queue, id) DO NOTHING
RETURNING {inTime}`)

// insertAgainSQL is for ids that have a row, whose tasks may be finished. It leaves
// out, by a subquery, what is live or was stored by this very call: ON CONFLICT DO
// UPDATE locks a row also where its WHERE says no, which in a long transaction of
// the caller's would hold up that task's heartbeats. ON CONFLICT decides all the
// same: it sees rows that came after the snapshot.
var insertAgainSQL = by("$10", `
INSERT INTO {table} AS t (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at)
{given}
 WHERE (SELECT {live} OR t.call_id = $3::text FROM {table} AS t WHERE t.queue = $1::text AND t.id = a.id) IS NOT TRUE
ON CONFLICT (queue, id) DO UPDATE
   SET status = 'pending', due = excluded.due, planned = excluded.planned,
       token = greatest(t.token + 1, excluded.token), holder = '', lease_until = 0,
       attempts = 0, crashes = 0, max_attempts = excluded.max_attempts, kind = excluded.kind,
       payload = excluded.payload, meta = excluded.meta, last_error = '', call_id = excluded.call_id,
       created_at = excluded.created_at, finished_at = NULL
 WHERE t.status IN ('done', 'dead', 'cancelled') AND t.call_id <> excluded.call_id
RETURNING {inTime}`)

const seeInsertsSQL = `
SELECT t.id, t.status, t.call_id FROM {table} AS t
 WHERE t.queue = $1::text AND t.id = ANY (ARRAY(SELECT unnest($2::text[]))) AND {durable}`

// taskBytes is about what a row takes besides its payload, meta and kind.
const taskBytes = 400

// Insert implements core.Store: one round trip for up to 1,000 tasks or 8 MiB when
// no id has a row, two more where some have. It waits until ctx is done
// where another transaction has inserted the same id and not yet committed.
func (s *Store) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	r, err := s.runner(ctx)
	if err != nil {
		return s.fail("insert", err)
	}
	failed, err := s.insert(ctx, r, call, tasks)
	if err != nil {
		return s.fail("insert", err)
	}
	return batchError(failed)
}

func (s *Store) insert(ctx context.Context, r runner, call core.Call, tasks []core.Task) ([]core.ItemError, error) {
	var failed []core.ItemError
	size := func(t core.Task) int { return taskBytes + len(t.Payload) + len(t.Meta) + len(t.Kind) }
	for b := range batches(tasks, func(t core.Task) core.ID { return t.ID }, size) {
		left := b.open()
		if err := r.run(ctx, s.sql.insert, s.insertArgs(b, call), strike(left)); err != nil {
			return nil, err
		}
		if len(left) > 0 {
			if err := r.run(ctx, s.sql.insertAgain, s.insertArgs(b.only(left), call), strike(left)); err != nil {
				return nil, err
			}
		}
		items, err := s.seeInserts(ctx, r, call, left)
		if err != nil {
			return nil, err
		}
		failed = append(failed, items...)
	}
	return failed, nil
}

func (s *Store) insertArgs(b batch[core.Task], call core.Call) []any {
	return []any{s.queue, b.ids(), call.ID, call.Now.UnixMilli(),
		column(b, func(t core.Task) int64 { return t.Due.UnixMilli() }),
		column(b, func(t core.Task) int32 { return int32(t.MaxAttempts) }), // at most 1<<30, by Task.Check
		column(b, func(t core.Task) string { return t.Kind }),
		column(b, func(t core.Task) []byte { return notNil(t.Payload) }),
		column(b, func(t core.Task) []byte { return notNil(t.Meta) }),
		byOf(call.By),
	}
}

// seeInserts reads back the rows that the insert left alone.
func (s *Store) seeInserts(ctx context.Context, r runner, call core.Call, left open) ([]core.ItemError, error) {
	if len(left) == 0 {
		return nil, nil
	}
	var failed []core.ItemError
	err := r.run(ctx, s.sql.seeInserts, []any{s.queue, left.ids()}, func(scan scanner) error {
		var row claim.Row
		var id, status string
		if err := scan(&id, &status, &row.CallID); err != nil {
			return err
		}
		row.Status = claim.Status(status)
		if place, ok := left.take(id); ok {
			if err := row.Inserted(call); err != nil {
				failed = append(failed, core.ItemError{Index: place, ID: core.ID(id), Err: err})
			}
		}
		return nil
	})
	// Rows that went away between the two statements: the next try makes them.
	for id, place := range left {
		gone := fmt.Errorf("%w, was deleted at this moment, or is kept out by a trigger or a row security policy", core.ErrBusy)
		failed = append(failed, core.ItemError{Index: place, ID: core.ID(id), Err: gone})
	}
	return failed, err
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

package sqliteclaim

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

const insertSQL = `
INSERT INTO $table (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at)
VALUES (?1, ?4, 'pending', ?5, ?5, ?10, ?6, ?7, ?8, ?9, ?3, ?2)
ON CONFLICT (queue, id) DO UPDATE SET
	status = 'pending', due = excluded.due, planned = excluded.planned,
	token = max(token + 1, excluded.token), holder = '', lease_until = 0,
	attempts = 0, crashes = 0, max_attempts = excluded.max_attempts,
	kind = excluded.kind, payload = excluded.payload, meta = excluded.meta, last_error = '',
	call_id = excluded.call_id, created_at = excluded.created_at, finished_at = NULL
WHERE status IN ('done', 'dead', 'cancelled') AND call_id <> excluded.call_id`

const insertedSQL = `
SELECT id, status, call_id FROM $table
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))`

// Insert implements [core.Store].
func (s *Store) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return claim.InChunks(tasks, maxItems, maxBytes, taskBytes, func(tasks []core.Task) error {
		var refused []core.ItemError
		err := s.do(ctx, "insert", share(tasks, taskBytes), call.By, func(q querier) (err error) {
			refused, err = s.insertInto(ctx, q, call, tasks)
			return err
		})
		return cmp.Or(err, core.NewBatchError(refused))
	})
}

// InsertTx is Insert inside a transaction of the caller's: the tasks are there
// when it commits. It checks and rounds its input, which for Insert core does.
// Items that are refused (ErrInvalid, ErrExists) are named in a *core.BatchError;
// the transaction goes on and may be committed with the others. call.ID must
// be unique to this transaction; a repeat of it, after a commit whose outcome was
// unknown, uses the ID again, which is recognised: no task is changed, and that is
// no error. The repeat's other writes would be made again, so guard them by a unique
// key of your own.
//
// The transaction may be on any connection to the file. Tell the index about the
// tasks after the commit (core's Producer does so in Track); else a sweep does.
func (s *Store) InsertTx(ctx context.Context, tx *sql.Tx, call core.Call, tasks []core.Task) error {
	if err := call.Check(); err != nil {
		return fmt.Errorf("sqliteclaim: insert: %w", err)
	}
	var failed []core.ItemError
	good := make([]core.Task, 0, len(tasks))
	places := make([]int, 0, len(tasks))
	seen := make(map[core.ID]bool, len(tasks))
	for i, t := range tasks {
		err := t.Check()
		if err == nil && seen[t.ID] {
			err = fmt.Errorf("%w: id is in this batch twice", core.ErrInvalid)
		}
		if err != nil {
			failed = append(failed, core.ItemError{Index: i, ID: t.ID, Err: err})
			continue
		}
		seen[t.ID] = true
		t.Due = core.CeilMilli(t.Due)
		good, places = append(good, t), append(places, i)
	}
	q := newOnSQL(tx)
	defer q.close()
	if len(good) > 0 { // before the clock is read, which insertInto does
		if _, err := q.exec(ctx, s.sql.lock); err != nil {
			return s.wrap("insert", err)
		}
	}
	for start, chunk := range claim.Chunks(good, maxItems, maxBytes, taskBytes) {
		errs, err := s.insertInto(ctx, q, call, chunk)
		if err != nil {
			return s.wrap("insert", err)
		}
		failed = appendErrors(failed, start, errs, places...)
	}
	return batchError(failed)
}

// lockSQL takes the file's write lock for the transaction that it is in, if that hasn't
// it yet, and changes nothing.
const lockSQL = `UPDATE $table SET token = token WHERE 0`

// insertInto inserts a chunk, in a transaction that holds the write lock, and returns
// the refusals by place in it.
func (s *Store) insertInto(ctx context.Context, q querier, call core.Call, tasks []core.Task) ([]core.ItemError, error) {
	var refused []int
	token := tokens.next(time.Now())
	for i := range tasks {
		t := &tasks[i]
		n, err := q.exec(ctx, s.sql.insert, s.queue, call.Now.UnixMilli(), call.ID,
			string(t.ID), t.Due.UnixMilli(), t.MaxAttempts, t.Kind, t.Payload, t.Meta, token)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			refused = append(refused, i)
		}
	}
	return s.reasons(ctx, q, s.sql.inserted, refused,
		func(i int) core.ID { return tasks[i].ID },
		func(r *claim.Row) []any { return []any{(*string)(&r.ID), (*string)(&r.Status), &r.CallID} },
		func(r claim.Row, i int) error { return r.Inserted(call) })
}

func taskBytes(t core.Task) int { return len(t.ID) + len(t.Kind) + len(t.Payload) + len(t.Meta) }

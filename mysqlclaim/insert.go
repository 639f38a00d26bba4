package mysqlclaim

import (
	"bytes"
	"context"
	"errors"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func taskID(t core.Task) core.ID { return t.ID }

func taskBytes(it item[core.Task]) int {
	t := it.v
	return literalBytes(len(t.ID)) + literalBytes(len(t.Kind)) + literalBytes(len(t.Payload)) + literalBytes(len(t.Meta)) + 300
}

// Insert is one multi-row INSERT for each 500 tasks or megabyte, in which all
// ids are new; three or four statements where they aren't. It waits for another
// transaction that is inserting, or has locked, the same id.
func (s *Store) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return s.fail("insert", err)
	}
	var failed failures
	r := s.auto(call.By)
	if err := s.insert(ctx, r, call, sorted(tasks, taskID), &failed); err != nil {
		return s.fail("insert", r.effect.prove(err))
	}
	return failed.err()
}

func (s *Store) insert(ctx context.Context, r runner, call core.Call, items []item[core.Task], failed *failures) error {
	for _, chunk := range chunks(items, taskBytes) {
		// A plain INSERT that succeeds made every row: no guess from a row count,
		// whose meaning for duplicates depends on clientFoundRows.
		_, err := r.exec(ctx, s.insertStatement(chunk, call, r))
		if number(err) == errDuplicate {
			err = s.insertAgain(ctx, r, call, chunk, failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// insertAgain stores a chunk some of whose ids have a row: what is missing is
// inserted, finished rows are replaced, and each row tells whether it is this
// call's. Existing rows are only looked at after the second INSERT, so that in a
// transaction the read-back locks rows, never the gaps where others insert.
func (s *Store) insertAgain(ctx context.Context, r runner, call core.Call, chunk []item[core.Task], failed *failures) error {
	stmt := s.insertStatement(chunk, call, r).sql(" ON DUPLICATE KEY UPDATE id = VALUES(id)")
	if _, err := r.exec(ctx, stmt); err != nil {
		return err
	}
	rows, err := s.readBack(ctx, r, idList(chunk, taskID))
	if err != nil {
		return err
	}
	var finished []item[core.Task]
	for _, it := range chunk {
		switch err := inserted(rows, it.v.ID, call); {
		case errors.Is(err, core.ErrBusy):
			finished = append(finished, it)
		default:
			failed.add(it.at, it.v.ID, err)
		}
	}
	if len(finished) == 0 {
		return nil
	}
	changed, err := r.exec(ctx, s.replaceStatement(finished, call, r))
	if err != nil || changed == len(finished) {
		return err
	}
	if rows, err = s.readBack(ctx, r, idList(finished, taskID)); err != nil {
		return err
	}
	for _, it := range finished {
		failed.add(it.at, it.v.ID, inserted(rows, it.v.ID, call))
	}
	return nil
}

// inserted is what a row read back says about this call's insert. A row that is
// gone was purged under our hands: the next try makes it.
func inserted(rows map[core.ID]claim.Row, id core.ID, call core.Call) error {
	if row, ok := rows[id]; ok {
		return row.Inserted(call)
	}
	return core.ErrBusy
}

// insertStatement takes the rows from a table of literals, v. Its last row, with an
// empty id, is none: it is looked at when the others have been written, which may have
// waited for somebody's lock on one of the ids, and fails if it is too late by then.
// Their token is the server's clock, which rises for an id that is used again after its
// row was deleted. Rows that are written within 50 ms have one and the same, see fence;
// one that comes later, after a wait for somebody's lock mostly, has its own: its id may
// have been used meanwhile.
func (s *Store) insertStatement(chunk []item[core.Task], call core.Call, r runner) *text {
	row := "ROW("
	if r.dialect.mariadb {
		row = "("
	}
	t := new(text).sql("INSERT INTO ", s.quoted,
		" (queue, id, status, due, planned, token, max_attempts, kind, payload, meta, call_id, created_at) ",
		"WITH v (id, due, max_attempts, kind, payload, meta) AS (VALUES ")
	for _, it := range chunk {
		v := it.v
		t.sql(row).val(string(v.ID)).sql(", ").int(v.Due.UnixMilli()).sql(", ").int(int64(v.MaxAttempts)).sql(", ").val(v.Kind)
		t.sql(", ").val(string(v.Payload)).sql(", ").val(string(v.Meta)).sql("), ")
	}
	if r.by.IsZero() {
		t.b = bytes.TrimSuffix(t.b, []byte(", "))
	} else {
		t.sql(row).val("").sql(", 0, 0, ").val("").sql(", ").val("").sql(", ").val("").sql(")")
	}
	t.sql(") SELECT ").val(s.queue).sql(", v.id, 'pending', v.due, v.due, ", token, ", v.max_attempts, v.kind, v.payload, v.meta, ").val(call.ID)
	t.sql(", ").int(call.Now.UnixMilli()).sql(" FROM (SELECT ", serverClock, " AS now) AS c STRAIGHT_JOIN v WHERE ")
	if r.by.IsZero() {
		return t.sql("TRUE") // it parts the join from what may follow
	}
	return t.sql("v.id <> ").val("").sql(" OR NOT ").intime(r.by)
}

// token is what a row that insertStatement makes begins with.
const token = "IF(" + serverClock + " < c.now + 50000, c.now, " + serverClock + ")"

// replaceStatement uses finished rows again. Not done by ON DUPLICATE KEY
// UPDATE, whose assignments see one another: status and call_id both decide and
// both change.
func (s *Store) replaceStatement(chunk []item[core.Task], call core.Call, r runner) *text {
	values := table(chunk, []string{"id", "due", "max_attempts", "kind", "payload", "meta"}, func(v core.Task, next func() *text) {
		next().val(string(v.ID))
		next().int(v.Due.UnixMilli())
		next().int(int64(v.MaxAttempts))
		next().val(v.Kind)
		next().val(string(v.Payload))
		next().val(string(v.Meta))
	})
	guard := new(text).sql("b.status NOT IN ('pending', 'running') AND b.call_id <> ").val(call.ID).andInTime(r.by).String()
	was := s.byValues("b.id, b.token, v.due, v.max_attempts, v.kind, v.payload, v.meta", values, guard, len(chunk), r)
	now := call.Now.UnixMilli()
	t := s.update(was).sql("t.status = 'pending', t.due = was.due, t.planned = was.due, t.token = GREATEST(was.token + 1, ", serverClock)
	t.sql("), t.holder = DEFAULT(t.holder), t.lease_until = 0, t.attempts = 0, t.crashes = 0, t.max_attempts = was.max_attempts, t.kind = was.kind, ")
	t.sql("t.payload = was.payload, t.meta = was.meta, t.last_error = NULL, t.finished_at = NULL, t.call_id = ").val(call.ID)
	return t.sql(", t.created_at = ").int(now)
}

package mysqlclaim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

func settlementID(st core.Settlement) core.ID { return st.Grant.ID }

func settlementGrant(st core.Settlement) core.Grant { return st.Grant }

func settlementBytes(it item[core.Settlement]) int {
	g := it.v.Grant
	return literalBytes(len(g.ID)) + literalBytes(len(g.Holder)) + literalBytes(len(it.v.Err)) + 80
}

// Settle is one statement an outcome for each 500 settlements, and one
// read-back where it changed fewer rows than that. With DeleteFinished, if some of
// those that are done can't be deleted, they are read, the others are deleted, and
// what is still there then is read again. Without it, on MariaDB, those that are done
// take two UPDATEs where a row is locked.
func (s *Store) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return s.fail("settle", err)
	}
	var failed failures
	r := s.auto(time.Time{})
	if err := s.settle(ctx, r, now, sorted(settlements, settlementID), &failed); err != nil {
		return s.fail("settle", r.effect.prove(err))
	}
	return failed.err()
}

func (s *Store) settle(ctx context.Context, r runner, now time.Time, items []item[core.Settlement], failed *failures) error {
	groups := map[core.Outcome][]item[core.Settlement]{}
	for _, it := range items {
		groups[it.v.Outcome] = append(groups[it.v.Outcome], it)
	}
	// Those that delete rows come last: a repeat of what was done before finds its rows.
	for _, outcome := range []core.Outcome{core.Retry, core.DeadLetter, core.Released, core.Done} {
		for _, chunk := range chunks(groups[outcome], settlementBytes) {
			step := s.settleChunk
			switch {
			case r.read != "" && (len(chunk) > 1 || outcome == core.Done && s.deleteFinished):
				step = s.settleSeen
			case outcome == core.Done && s.deleteFinished:
				step = s.settleWhole
			}
			if err := step(ctx, r, outcome, chunk, now, failed); err != nil {
				return err
			}
		}
		delete(groups, outcome)
	}
	for _, rest := range groups { // no outcome of the contract
		for _, it := range rest {
			failed.add(it.at, it.v.Grant.ID, core.ErrInvalid)
		}
	}
	return nil
}

func (s *Store) settleChunk(ctx context.Context, r runner, outcome core.Outcome, chunk []item[core.Settlement], now time.Time, failed *failures) error {
	changed, err := r.change(ctx, func(r runner) *text { return s.settleStatement(outcome, chunk, now, r) })
	if err != nil || changed == len(chunk) {
		return err
	}
	rows, err := s.readBack(ctx, r, idList(chunk, settlementID))
	if err != nil {
		return err
	}
	for _, it := range chunk {
		failed.add(it.at, it.v.Grant.ID, r.settled(rows[it.v.Grant.ID], it.v.Grant)) // a missing row is nobody's
	}
	return nil
}

// settleWhole deletes all of the chunk or nothing, in one statement. Where some can't
// be deleted, settleSeen finds out which.
func (s *Store) settleWhole(ctx context.Context, r runner, outcome core.Outcome, chunk []item[core.Settlement], now time.Time, failed *failures) error {
	changed, err := r.exec(ctx, s.removeAll(byGrants(s, chunk, settlementGrant, "", r), len(chunk)))
	if err != nil || changed == len(chunk) {
		return err
	}
	return s.settleSeen(ctx, r, outcome, chunk, now, failed)
}

// settleSeen looks before it writes: of a row that is missing afterwards nobody
// could say whether this call deleted it or found it gone. In the caller's
// transaction the look locks the rows, and tells which of many an earlier call
// settled under the same grant.
func (s *Store) settleSeen(ctx context.Context, r runner, outcome core.Outcome, chunk []item[core.Settlement], now time.Time, failed *failures) error {
	rows, err := s.readBack(ctx, r, idList(chunk, settlementID))
	if err != nil {
		return err
	}
	held := slices.DeleteFunc(slices.Clone(chunk), func(it item[core.Settlement]) bool {
		err := r.settled(rows[it.v.Grant.ID], it.v.Grant)
		if errors.Is(err, core.ErrBusy) { // still running under this grant
			return false
		}
		failed.add(it.at, it.v.Grant.ID, err)
		return true
	})
	if len(held) == 0 {
		return nil
	}
	changed, err := r.exec(ctx, s.settleStatement(outcome, held, now, r))
	if err != nil || changed == len(held) {
		return err
	}
	if rows, err = s.readBack(ctx, r, idList(held, settlementID)); err != nil {
		return err
	}
	for _, it := range held {
		row, ok := rows[it.v.Grant.ID]
		if !ok {
			changed--
			continue
		}
		failed.add(it.at, it.v.Grant.ID, row.Settled(it.v.Grant))
	}
	if changed < 0 { // a cancel deleted some between the two statements
		return errVanished
	}
	return nil
}

var errVanished = errors.New("some of the tasks were deleted meanwhile, which ones can't be told")

func (s *Store) settleStatement(outcome core.Outcome, chunk []item[core.Settlement], now time.Time, r runner) *text {
	ms := new(text).int(now.UnixMilli()).String()
	switch {
	case outcome == core.Done && s.deleteFinished:
		return s.remove(byGrants(s, chunk, settlementGrant, "", r))
	case outcome == core.Done:
		return setByGrants(s, chunk, settlementGrant, "", "t.status = 'done', t.due = NULL, t.lease_until = 0, t.finished_at = "+ms, r)
	}
	columns, carried := []string{"id", "token", "holder"}, "b.id"
	switch outcome {
	case core.Retry:
		columns, carried = append(columns, "due", "err"), "b.id, v.due, v.err"
	case core.DeadLetter:
		columns, carried = append(columns, "err"), "b.id, v.err"
	case core.Released:
		columns, carried = append(columns, "due"), "b.id, v.due, b.attempts"
	}
	values := table(chunk, columns, func(st core.Settlement, next func() *text) {
		next().val(string(st.Grant.ID))
		next().int(st.Grant.Token)
		next().val(st.Grant.Holder)
		if outcome == core.Retry || outcome == core.Released {
			next().int(st.Due.UnixMilli())
		}
		if outcome == core.Retry || outcome == core.DeadLetter {
			next().val(st.Err)
		}
	})
	was := s.byValues(carried, values, heldGuard, len(chunk), r)
	switch outcome {
	case core.DeadLetter:
		return s.update(was).sql("t.status = 'dead', t.due = NULL, t.lease_until = 0, t.last_error = was.err, t.finished_at = ", ms)
	case core.Retry:
		return s.update(was).sql("t.status = 'pending', t.due = was.due, t.planned = was.due, t.lease_until = 0, t.last_error = was.err")
	default:
		return s.update(was).sql("t.status = 'pending', t.due = was.due, t.lease_until = 0, t.attempts = was.attempts - 1")
	}
}

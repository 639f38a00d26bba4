package mysqlclaim

import (
	"context"
	"math"

	"github.com/dueclaim/dueclaim/core"
)

func moveID(m core.Move) core.ID { return m.ID }

func moveBytes(it item[core.Move]) int { return literalBytes(len(it.v.ID)) + 80 }

// Reschedule is one UPDATE for each 500 moves, and one read-back where it
// changed fewer rows than that.
func (s *Store) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	if len(moves) == 0 {
		return nil
	}
	if err := s.ready(ctx, s.db); err != nil {
		return s.fail("reschedule", err)
	}
	var failed failures
	r := s.auto(call.By)
	for _, chunk := range chunks(sorted(moves, moveID), moveBytes) {
		changed, err := r.exec(ctx, s.rescheduleStatement(chunk, r))
		if err != nil {
			return s.fail("reschedule", r.effect.prove(err))
		}
		if changed == len(chunk) {
			continue
		}
		rows, err := s.readBack(ctx, r, idList(chunk, moveID))
		if err != nil {
			return s.fail("reschedule", r.effect.prove(err))
		}
		for _, it := range chunk {
			failed.add(it.at, it.v.ID, rows[it.v.ID].Rescheduled(it.v)) // a missing row isn't pending
		}
	}
	return failed.err()
}

func (s *Store) rescheduleStatement(chunk []item[core.Move], r runner) *text {
	// From is a range, so that "whatever it is" needs no NULL.
	values := table(chunk, []string{"id", "low", "high", "target"}, func(m core.Move, next func() *text) {
		low, high := int64(0), int64(math.MaxInt64)
		if !m.From.IsZero() {
			low = m.From.UnixMilli()
			high = low
		}
		next().val(string(m.ID))
		next().int(low)
		next().int(high)
		next().int(m.To.UnixMilli())
	})
	guard := new(text).sql("b.status = 'pending' AND b.due BETWEEN v.low AND v.high AND b.due <> v.target").andInTime(r.by).String()
	was := s.byValues("b.id, v.target", values, guard, len(chunk), r)
	return s.update(was).sql("t.due = was.target, t.planned = was.target")
}

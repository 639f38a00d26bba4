package sqliteclaim

import (
	"context"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// scanner reads the current row into the variables that dest points to.
type scanner func(dest ...any) error

// each runs a query and calls f for each row. It has read all rows and released
// the statement when it returns.
func each(ctx context.Context, q reader, query string, f func(scanner) error, args ...any) (err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readBack reads rows by their ids, with a query of the columns that dest names,
// in that order; the first two parameters are the queue and the ids.
func (s *Store) readBack(ctx context.Context, q querier, query string, ids []core.ID, dest func(*claim.Row) []any, args ...any) (map[core.ID]claim.Row, error) {
	rows := make(map[core.ID]claim.Row, len(ids))
	err := q.query(ctx, query, func(scan scanner) error {
		var r claim.Row
		if err := scan(dest(&r)...); err != nil {
			return err
		}
		rows[r.ID] = r
		return nil
	}, append([]any{s.queue, idArray(ids)}, args...)...)
	return rows, err
}

// reasons reads back the items that a statement did not change and says why, by
// place in the batch: what reason answers, unless that is nil.
func (s *Store) reasons(ctx context.Context, q querier, query string, unchanged []int, id func(i int) core.ID,
	columns func(*claim.Row) []any, reason func(r claim.Row, i int) error,
) ([]core.ItemError, error) {
	if len(unchanged) == 0 {
		return nil, nil
	}
	ids := make([]core.ID, len(unchanged))
	for k, i := range unchanged {
		ids[k] = id(i)
	}
	rows, err := s.readBack(ctx, q, query, ids, columns)
	if err != nil {
		return nil, err
	}
	var errs []core.ItemError
	for k, i := range unchanged {
		// A row that isn't there is the zero Row, which is in no state.
		if err := reason(rows[ids[k]], i); err != nil {
			errs = append(errs, core.ItemError{Index: i, ID: ids[k], Err: err})
		}
	}
	return errs, nil
}

package sqliteclaim

import (
	"context"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// A transaction covers at most so many items, and items of so many bytes beyond
// the first, so that a huge batch doesn't keep others from the file for long.
const (
	maxItems = 2000
	maxBytes = 4 << 20
)

// never is a core.Call.By: what Extend and Settle do late they do under a grant that is
// still the newest.
var never time.Time

// do runs f, which is a call or some chunk of it, in a transaction; see writer.write.
func (s *Store) do(ctx context.Context, call string, items int, by time.Time, f func(q querier) error) error {
	if err := s.writeBy(ctx, items, by, f); err != nil {
		return s.wrap(call, err)
	}
	return nil
}

// writeBy is write for a call that must have no effect after by. The clock is read
// where the write lock is held: nobody else changes anything from there to the commit.
func (d database) writeBy(ctx context.Context, items int, by time.Time, f func(q querier) error) error {
	var late error
	err := d.write(ctx, items, func(q querier) error {
		// Not an error of the transaction, which others may share.
		if late = isLate(by, time.Now()); late != nil {
			return nil
		}
		return f(q)
	})
	if late != nil {
		return late
	}
	return err
}

// isLate is nil up to by; zero is never.
func isLate(by, now time.Time) error {
	if by.IsZero() || !now.After(by) {
		return nil
	}
	return fmt.Errorf("%w: its turn came %v after its caller had given it up", core.ErrNotDone, now.Sub(by).Round(time.Millisecond))
}

// share is a chunk's part of what a transaction covers at most, in items.
func share[T any](chunk []T, size func(T) int) int {
	bytes := 0
	for _, item := range chunk {
		bytes += size(item)
	}
	return max(len(chunk), bytes/(maxBytes/maxItems))
}

package sqliteclaim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/dueclaim/dueclaim/core"
)

// wrap names the call, and says what to do where the driver's error doesn't.
func (s *Store) wrap(call string, err error) error {
	if code(err) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table: "+s.table) {
		return fmt.Errorf("sqliteclaim: %s: table %s %w: %w", call, s.table, core.ErrNotMigrated, err)
	}
	return fmt.Errorf("sqliteclaim: %s: %w", call, explain(err))
}

// explain adds to an error of the driver what it means for the file.
func explain(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file is not a SQLite database (or an encrypted one): %w", err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("the file, or its directory, is read-only; a claim store must write: %w", err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("the file, or its -wal or -shm file beside it, can't be opened or created; check the path and the rights on its directory: %w", err)
	default:
		return err
	}
}

// code returns SQLite's primary result code, or 0 for an error that isn't
// SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// appendErrors adds a chunk's errors, whose Index is a place in the chunk, which
// starts at start. places, if given, maps places to those in the caller's slice.
func appendErrors(all []core.ItemError, start int, chunk []core.ItemError, places ...int) []core.ItemError {
	for _, e := range chunk {
		e.Index += start
		if places != nil {
			e.Index = places[e.Index]
		}
		all = append(all, e)
	}
	return all
}

// batchError is core.NewBatchError for items that are not in order yet.
func batchError(items []core.ItemError) error {
	slices.SortFunc(items, func(a, b core.ItemError) int { return a.Index - b.Index })
	return core.NewBatchError(items)
}

// millis is t in milliseconds, rounded up: for due times and lease ends. Instants
// to compare with are rounded down, which is what UnixMilli does.
func millis(t time.Time) int64 { return core.CeilMilli(t).UnixMilli() }

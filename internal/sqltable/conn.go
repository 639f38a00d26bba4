package sqltable

import (
	"context"
	"slices"
)

// Conn runs statements on a user's table.
type Conn interface {
	// Query calls row for each row of the result; the Row is the callee's to keep.
	// Rows count only when Query returns nil.
	Query(ctx context.Context, q Query, row func(Row)) error
	// Change's error may come with Changes: items that are true there did change.
	Change(ctx context.Context, c Change) (Changes, error)
}

// Partial is an error behind which something of a call may have taken effect, whatever
// the error itself would prove: statements of the same call were made before it, or
// beside it.
type Partial struct{ Err error }

func (p Partial) Error() string { return p.Err.Error() }
func (p Partial) Unwrap() error { return p.Err }

// watched is a Conn whose errors are Partial once something was changed.
type watched struct {
	Conn
	changed bool
}

func (w *watched) seen(err error) error {
	if err != nil && w.changed {
		return Partial{err}
	}
	return err
}

func (w *watched) Query(ctx context.Context, q Query, row func(Row)) error {
	return w.seen(w.Conn.Query(ctx, q, row))
}

func (w *watched) Change(ctx context.Context, c Change) (Changes, error) {
	done, err := w.Conn.Change(ctx, c)
	w.changed = w.changed || slices.Contains(done.Changed, true) || err == nil && done.Changed == nil
	return done, w.seen(err)
}

// Limits are what one statement of a database takes.
type Limits struct {
	Rows  int
	Bytes int // of ids, holders and texts, beyond the first item
	// Unfit tells whether an error of Change says that the database refused a statement
	// for what it would have written (too long, another character set, a CHECK, a
	// trigger's veto, a missing right on a column), so that the same without that may
	// pass. The transaction can go on. Nil: none does.
	Unfit func(err error) bool
}

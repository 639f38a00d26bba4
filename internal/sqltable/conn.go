package sqltable

import (
	"context"
	"errors"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

// Conn runs statements on a user's table.
type Conn interface {
	// Query calls row for each row of the result; the Row is the callee's to keep.
	// Rows count only when Query returns nil.
	Query(ctx context.Context, q Query, row func(Row)) error
	// Change's error may come with Changes: items that are true there did change.
	Change(ctx context.Context, c Change) (Changes, error)
}

// partial is an error of a call that had changed something before. Where it proves that its
// own statement was not done, that is no core.ErrNotDone of the call.
type partial struct{ err error }

func (p partial) Error() string { return p.err.Error() }

// Is and As are instead of Unwrap.
func (p partial) Is(target error) bool {
	return target != core.ErrNotDone && errors.Is(p.err, target)
}
func (p partial) As(target any) bool { return errors.As(p.err, target) }

// watched is a Conn whose errors are partial once something was changed.
type watched struct {
	Conn
	changed bool
}

func (w *watched) seen(err error) error {
	if err != nil && w.changed {
		return partial{err}
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

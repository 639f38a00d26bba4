package sqltable

import "context"

// Conn runs statements on a user's table.
type Conn interface {
	// Query calls row for each row of the result; the Row is the callee's to keep.
	// Rows count only when Query returns nil.
	Query(ctx context.Context, q Query, row func(Row)) error
	// Change's error may come with Changes: items that are true there did change.
	Change(ctx context.Context, c Change) (Changes, error)
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

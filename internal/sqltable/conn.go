package sqltable

import "context"

// Conn runs statements on a user's table.
type Conn interface {
	// Query calls row for each row of the result; the Row is the callee's to keep.
	// Rows count only when Query returns nil.
	Query(ctx context.Context, q Query, row func(Row)) error
	Change(ctx context.Context, c Change) (Changes, error)
}

// Limits bound what one statement of a Conn takes.
type Limits struct {
	Rows  int
	Bytes int // of ids, holders and texts, beyond the first item
}

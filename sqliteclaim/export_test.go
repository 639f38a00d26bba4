package sqliteclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// Recorder is a Conn that runs nothing and keeps the statements; rows that are
// asked for are not there, and every change succeeds.
type Recorder struct {
	T     *Table
	Texts []string
	Args  [][]any
}

func (r *Recorder) keep(s *statement, it *sqltable.Item) {
	r.Texts = append(r.Texts, s.text.String())
	r.Args = append(r.Args, s.arguments(it))
}

// Query implements sqltable.Conn.
func (r *Recorder) Query(_ context.Context, q sqltable.Query, _ func(sqltable.Row)) error {
	r.keep(r.T.query(q), nil)
	return nil
}

// Change implements sqltable.Conn.
func (r *Recorder) Change(_ context.Context, c sqltable.Change) (sqltable.Changes, error) {
	if len(c.Fields) == 0 {
		s, _ := r.T.changeItems(c)
		r.keep(s, nil)
	} else {
		r.keep(r.T.changeItem(c), &c.Items[0])
	}
	return sqltable.Changes{Changed: make([]bool, len(c.Items))}, nil
}

// SetBack sets the clock back under the tokens of this process's tables.
func SetBack(by time.Duration) { tableTokens.saw(time.Now().Add(by).UnixMicro()) }

// Engine is the table's.
func (t *Table) Engine() *sqltable.Engine { return t.engine }

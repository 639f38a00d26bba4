package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var indexHolds = []testCase[*indexEnv]{
	{
		name: "hold/ctx", needs: "Hold",
		rule: "While another holds the whole backend a method returns soon after its ctx is done, also behind a call that may wait longer; afterwards the same handle works, and a repeat is harmless.",
		run: func(e *indexEnv) {
			kept := core.Entry{ID: "kept", Due: at(3)}
			e.add(kept, core.Entry{ID: "a", Due: base})
			attempts := e.attempts()
			e.held(e.hold, attempt{"Add", func(ctx context.Context) error { return e.idx.Add(ctx, []core.Entry{kept}) }}, attempts)
			e.back()
			e.wantSuccess(attempts)
			assert.NoError(e, e.insist(func() error { _, err := e.peer.Due(e.ctx, base, 1); return err }), "Due by another handle")
			e.wantAll("after all was repeated", kept, core.Entry{ID: "new", Due: at(5)})
		},
	},
}

package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

var storeContexts = []testCase[*storeEnv]{
	{
		name: "context/midway-stores",
		rule: "Insert, Reschedule and Cancel whose ctx ends in the middle of a large batch return soon, with an error or with all of it done; a repeat completes them.",
		run: func(e *storeEnv) {
			n := e.scale(501, 201)
			a, b := manyIDs("a", n), manyIDs("b", n)
			insert := func(ids []core.ID) func(ctx context.Context) error {
				call := e.call(base)
				return func(ctx context.Context) error { return e.s.Insert(ctx, call, tasks(ids, base)) }
			}
			e.cutShort("Insert", insert(a), insert(b))
			assert.Len(e, e.waiting(base), 2*n, "rows that wait after the Inserts")
			move := func(ids []core.ID) func(ctx context.Context) error {
				moves := make([]core.Move, n)
				for i, id := range ids {
					moves[i] = core.Move{ID: id, From: base, To: at(i + 1)}
				}
				return func(ctx context.Context) error { return e.s.Reschedule(ctx, core.Call{Now: base}, moves) }
			}
			e.cutShort("Reschedule", move(a), move(b))
			for _, entry := range e.waiting(base) {
				assert.False(e, entry.Due.Equal(base), "%q: got its old due time, want it moved", entry.ID)
			}
			cancel := func(ids []core.ID) func(ctx context.Context) error {
				return func(ctx context.Context) error { _, err := e.s.Cancel(ctx, core.Call{Now: base}, ids); return err }
			}
			e.cutShort("Cancel", cancel(a), cancel(b))
			e.wantWaiting(base, "all cancelled")
		},
	},
}

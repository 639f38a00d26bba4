package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

var indexContexts = []testCase[*indexEnv]{
	{
		name: "context/midway",
		rule: "A method whose ctx ends in the middle of a large batch returns soon, with an error or with all of it done; a repeat completes it.",
		run: func(e *indexEnv) {
			const n = 3000
			a, b := manyIDs("a", n), manyIDs("b", n)
			entries := func(ids []core.ID, ms int) []core.Entry {
				list := make([]core.Entry, n)
				for i, id := range ids {
					list[i] = core.Entry{ID: id, Due: at(i + ms)}
				}
				return list
			}
			moves := func(ids []core.ID, from, to int) []core.Move {
				list := make([]core.Move, n)
				for i, id := range ids {
					list[i] = core.Move{ID: id, From: at(i + from), To: at(i + to)}
				}
				return list
			}
			step := func(method string, do func(ids []core.ID) func(ctx context.Context) error, wantB []core.Entry) {
				finished := false
				e.midway(method, do(a), func(ctx context.Context) error {
					err := do(b)(ctx)
					finished = err == nil
					return err
				})
				if !finished {
					require.NoError(e, e.insist(func() error { return do(b)(e.ctx) }), "%s, repeated", method)
				}
				var got []core.Entry
				for _, entry := range e.all() {
					if entry.ID[0] == 'b' {
						got = append(got, entry)
					}
				}
				e.wantEntries(wantB, got, "after %s, cancelled in the middle and repeated where it failed", method)
			}
			step("Add", func(ids []core.ID) func(context.Context) error {
				return func(ctx context.Context) error { return e.idx.Add(ctx, entries(ids, 0)) }
			}, entries(b, 0))
			step("Move", func(ids []core.ID) func(context.Context) error {
				return func(ctx context.Context) error { return e.idx.Move(ctx, moves(ids, 0, 20_000)) }
			}, entries(b, 20_000))
			step("Remove", func(ids []core.ID) func(context.Context) error {
				return func(ctx context.Context) error { return e.idx.Remove(ctx, entries(ids, 20_000)) }
			}, nil)
			if restorer, ok := e.idx.(core.Restorer); ok {
				step("AddMissing", func(ids []core.ID) func(context.Context) error {
					return func(ctx context.Context) error { return restorer.AddMissing(ctx, entries(ids, 40_000)) }
				}, entries(b, 40_000))
			}
		},
	},
}

package conformance

import (
	"context"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cutShort makes a call on the batch a in full and on b with a ctx that ends in
// the middle, and repeats that one where it failed, as core does.
func (e *claimEnv) cutShort(method string, a, b func(ctx context.Context) error) {
	finished := false
	e.midway(method, a, func(ctx context.Context) error {
		err := b(ctx)
		finished = err == nil
		return err
	})
	if !finished {
		require.NoError(e, e.insistFree(func() error { return b(e.ctx) }), "%s, repeated", method)
	}
}

// claims is a Claim by one holder, with the answer's grants.
type claims struct {
	lease  core.Lease
	ids    []core.ID
	grants []core.Grant
}

func (e *claimEnv) claimInto(x *claims) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		got, err := e.c.Claim(ctx, x.ids, x.lease)
		if err != nil {
			return err
		}
		x.grants = nil
		for _, c := range got {
			switch c.Verdict {
			case core.Granted:
				x.grants = append(x.grants, c.Grant)
				assert.Equal(e, e.attempt(1), c.Attempt, "Attempt of %q", c.ID)
			case core.Refused: // the call that was cut short may have it for a moment yet
				return core.NewBatchError([]core.ItemError{{ID: c.ID, Err: core.ErrBusy}})
			default:
				e.Errorf("Claim of %q: got %s, want Granted", c.ID, c.Verdict)
			}
		}
		return nil
	}
}

func (x *claims) settlements(outcome core.Outcome) []core.Settlement {
	list := make([]core.Settlement, len(x.grants))
	for i, g := range x.grants {
		list[i] = core.Settlement{Grant: g, Outcome: outcome, Due: dueOf(outcome, at(i))}
	}
	return list
}

var claimContexts = []testCase[*claimEnv]{
	{
		name: "context/midway-claims", timed: true,
		rule: "A method whose ctx ends in the middle of a large batch returns soon, with an error or with all of it done; a repeat completes it.",
		run: func(e *claimEnv) {
			n := e.scale(501, 201)
			a, b := &claims{lease: e.lease(base), ids: manyIDs("a", n)}, &claims{lease: e.lease(base), ids: manyIDs("b", n)}
			e.put(tasks(a.ids, base)...)
			e.put(tasks(b.ids, base)...)
			e.cutShort("Claim", e.claimInto(a), e.claimInto(b))
			require.Len(e, b.grants, n, "grants in the end")
			extend := func(x *claims) func(ctx context.Context) error {
				return func(ctx context.Context) error { return e.c.Extend(ctx, x.grants, at(90_000)) }
			}
			e.cutShort("Extend", extend(a), extend(b))
			for _, c := range e.claim(e.peer, e.lease(at(60_000)), b.ids[0], b.ids[n/2], b.ids[n-1]) {
				e.wantVerdict(c, core.Held, at(90_000), "extended")
			}
			settle := func(x *claims) func(ctx context.Context) error {
				return func(ctx context.Context) error { return e.c.Settle(ctx, at(1), x.settlements(core.Retry)) }
			}
			e.cutShort("Settle", settle(a), settle(b))
			waiting := func(ctx context.Context) error {
				got, err := e.c.Waiting(ctx, at(1), core.Entry{}, endOfTime, 5*n)
				if err == nil && len(got) != 2*n {
					e.Errorf("Waiting: got %d rows, want an error or the %d that there are", len(got), 2*n)
				}
				return err
			}
			e.cutShort("Waiting", waiting, waiting)
		},
	},
}

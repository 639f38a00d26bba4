package conformance

import (
	"errors"
	"slices"
	"sync"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var storeRaces = []testCase[*storeEnv]{
	{
		name: "insert/one-winner",
		rule: "An id is unique among live tasks: of many Inserts of it at once exactly one succeeds, the others fail with ErrExists.",
		run: func(e *storeEnv) {
			const workers = 8
			ids := manyIDs("n", e.scale(60, 20))
			handles := e.handles(contendHandles)
			var mu sync.Mutex
			won := map[core.ID]string{}
			var wg sync.WaitGroup
			for w := range workers {
				e.spawn(&wg, func() {
					s := handles[w%len(handles)].(core.Store)
					mine := slices.Clone(ids)
					if w%2 == 1 {
						slices.Reverse(mine)
					}
					for chunk := range slices.Chunk(mine, 20) {
						call := e.call(base)
						list := tasks(chunk, base)
						for i := range list {
							list[i].Payload = []byte(call.ID)
						}
						err := e.insistFree(func() error { return s.Insert(e.ctx, call, list) })
						for i, id := range chunk {
							switch itemErr := errorOf(err, i); {
							case itemErr == nil:
								mu.Lock()
								if other := won[id]; other != "" {
									e.Errorf("%q was inserted by %s and by %s, want one of them", id, other, call.ID)
								}
								won[id] = call.ID
								mu.Unlock()
							case !errors.Is(itemErr, core.ErrExists):
								e.Errorf("Insert of %q: got %v, want nil or ErrExists", id, itemErr)
							}
						}
					}
				})
			}
			wg.Wait()
			for _, c := range e.grantAll(e.lease(base), ids...) {
				assert.Equal(e, won[c.ID], string(c.Task.Payload), "the call that stored %q", c.ID)
			}
		},
	},
	{
		name: "insert/replace-one-winner", needs: "KeepsFinished",
		rule: "Of many Inserts at once that would replace the same finished task exactly one succeeds.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", 20)
			e.insert(tasks(ids, base)...)
			e.cancel(e.s, at(1), ids...)
			handles := e.handles(contendHandles)
			wins := make([]map[core.ID]bool, 8)
			var wg sync.WaitGroup
			for w := range wins {
				wins[w] = map[core.ID]bool{}
				e.spawn(&wg, func() {
					s := handles[w%len(handles)].(core.Store)
					call := e.call(base)
					err := e.insistFree(func() error { return s.Insert(e.ctx, call, tasks(ids, base)) })
					for i, id := range ids {
						wins[w][id] = errorOf(err, i) == nil
					}
				})
			}
			wg.Wait()
			for _, id := range ids {
				n := 0
				for _, w := range wins {
					if w[id] {
						n++
					}
				}
				assert.Equal(e, 1, n, "Inserts that replaced %q", id)
			}
		},
	},
	{
		name: "cancel/against-claim",
		// Nor is one that WasRunning always seen as granted: a store that reads back
		// what it claimed may find it cancelled by then, and answers Gone.
		rule: "A Cancel and a Claim at once: a task that was Cancelled is never granted.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", e.scale(120, 60))
			e.insert(tasks(ids, base)...)
			fates, granted := map[core.ID]core.Fate{}, map[core.ID]core.Grant{}
			e.collide(ids, func(chunk []core.ID) {
				var got []core.Fate
				require.NoError(e, e.insistFree(func() (err error) { got, err = e.s.Cancel(e.ctx, core.Call{Now: at(1)}, chunk); return err }), "Cancel")
				for i, id := range chunk {
					fates[id] = got[i]
				}
			}, func(chunk []core.ID) {
				for _, c := range e.claimInsisting(e.peer, e.lease(base), chunk) {
					if c.Verdict == core.Granted {
						granted[c.ID] = c.Grant
					}
				}
			})
			for _, id := range ids {
				_, ok := granted[id]
				switch fate := fates[id]; {
				case fate == core.Cancelled && ok:
					e.Errorf("%q: got fate Cancelled and a grant, want one of them", id)
				case e.provides.KeepsFinished && fate != core.Cancelled && fate != core.WasRunning:
					e.Errorf("%q: got fate %s, want Cancelled or WasRunning", id, fate)
				}
			}
			e.wantWaiting(endOfTime, "in the end")
		},
	},
	{
		name: "reschedule/against-claim",
		rule: "A Reschedule and a Claim at once: exactly one takes effect.",
		run: func(e *storeEnv) {
			ids := manyIDs("n", e.scale(120, 60))
			e.insert(tasks(ids, base)...)
			moved, granted := map[core.ID]bool{}, map[core.ID]bool{}
			e.collide(ids, func(chunk []core.ID) {
				moves := make([]core.Move, len(chunk))
				for i, id := range chunk {
					moves[i] = core.Move{ID: id, From: base, To: at(1000)}
				}
				err := e.insistFree(func() error { return e.s.Reschedule(e.ctx, core.Call{Now: base}, moves) })
				for i, id := range chunk {
					moved[id] = errorOf(err, i) == nil
				}
			}, func(chunk []core.ID) {
				for _, c := range e.claimInsisting(e.peer, e.lease(base), chunk) {
					granted[c.ID] = c.Verdict == core.Granted
				}
			})
			for _, id := range ids {
				assert.NotEqual(e, moved[id], granted[id], "%q: rescheduled %t, granted %t; want exactly one", id, moved[id], granted[id])
			}
		},
	},
}

// insistFree repeats a call while its outcome is unknown or items found their
// row locked.
func (c *caseT) insistFree(call func() error) error {
	var last error
	err := c.insist(func() error {
		last = call()
		if errors.Is(last, core.ErrBusy) {
			return errors.New("some rows were busy") // hides the batch, so that it is repeated
		}
		return last
	})
	var batch *core.BatchError
	if err != nil && !errors.As(err, &batch) {
		c.Errorf("got error %v, want nil or a *core.BatchError in the end", err)
		c.FailNow()
	}
	return err
}

// errorOf returns the error of the batch's item i, nil where it took effect.
func errorOf(err error, i int) error {
	var batch *core.BatchError
	if errors.As(err, &batch) {
		for _, item := range batch.Items {
			if item.Index == i {
				return item.Err
			}
		}
	}
	return nil
}

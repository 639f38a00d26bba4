package conformance

import (
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
)

// next is e with the index of another queue in the place of its own.
func (e *indexEnv) next() *indexEnv {
	n := *e
	n.idx = e.neighbour()
	n.peer = n.idx
	return &n
}

var indexQueues = []testCase[*indexEnv]{
	{
		name: "queue/entries", needs: "Neighbour",
		rule: "No call of one queue sees or changes an entry of another, also with the same ids: Add, Due, Move and Remove.",
		run: func(e *indexEnv) {
			n := e.next()
			for _, pair := range [][2]*indexEnv{{e, n}, {n, e}} { // the one way and the other
				x, y := pair[0], pair[1]
				x.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "c", Due: at(30)})
				y.wantAll("after an Add to the other queue")
				y.add(core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "c", Due: at(30)}, core.Entry{ID: "d", Due: at(40)})
				y.move(core.Move{ID: "b", From: at(20), To: at(25)})
				y.remove(core.Entry{ID: "c", Due: at(30)})
				x.wantAll("after changes in the other queue",
					core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "c", Due: at(30)})
				y.wantAll("in that queue",
					core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(25)}, core.Entry{ID: "d", Due: at(40)})
				for _, env := range pair {
					env.remove(env.all()...)
				}
			}
		},
	},
	{
		name: "queue/restores", needs: "Neighbour Restorer",
		rule: "AddMissing adds to its own queue, and what another queue has is missing in it all the same.",
		run: func(e *indexEnv) {
			n := e.next()
			for _, pair := range [][2]*indexEnv{{e, n}, {n, e}} {
				x, y := pair[0], pair[1]
				x.add(core.Entry{ID: "a", Due: at(10)})
				y.restore(core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(20)})
				x.wantAll("after an AddMissing to the other queue", core.Entry{ID: "a", Due: at(10)})
				y.wantAll("in that queue", core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "b", Due: at(20)})
				for _, env := range pair {
					env.remove(env.all()...)
				}
			}
		},
	},
	{
		name: "queue/lists", needs: "Neighbour Lister",
		rule: "List lists its own queue alone, and a Remove wherever the entry stands is one in its own queue.",
		run: func(e *indexEnv) {
			n := e.next()
			for _, pair := range [][2]*indexEnv{{e, n}, {n, e}} {
				x, y := pair[0], pair[1]
				x.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "x", Due: at(30)})
				y.add(core.Entry{ID: "a", Due: at(5)}, core.Entry{ID: "y", Due: at(20)})
				x.wantEntries([]core.Entry{{ID: "a", Due: at(10)}, {ID: "x", Due: at(30)}}, x.list(x.idx, core.Entry{}, endOfTime, 10), "one queue")
				y.wantEntries([]core.Entry{{ID: "y", Due: at(20)}}, y.list(y.idx, core.Entry{ID: "a", Due: at(5)}, endOfTime, 10), "the other")
				y.remove(core.Entry{ID: "a"}, core.Entry{ID: "x"})
				x.wantAll("after a Remove from the other queue", core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "x", Due: at(30)})
				for _, env := range pair {
					env.remove(env.all()...)
				}
			}
		},
	},
	{
		name: "queue/takes", needs: "Neighbour Taker",
		rule: "Take takes and moves entries of its own queue, and the next due time is its own queue's, also where another queue has the same ids.",
		run: func(e *indexEnv) {
			n := e.next()
			for _, pair := range [][2]*indexEnv{{e, n}, {n, e}} {
				x, y := pair[0], pair[1]
				x.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "later", Due: at(90)})
				y.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(11)}, core.Entry{ID: "soon", Due: at(60)})
				taken, next := x.take(x.idx, at(20), at(500), 10)
				assert.Equal(e, []core.ID{"a"}, taken, "taken")
				e.wantTime(at(90), next, "next")
				y.wantAll("after a Take from the other queue",
					core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(11)}, core.Entry{ID: "soon", Due: at(60)})
				x.wantAll("in that queue", core.Entry{ID: "later", Due: at(90)}, core.Entry{ID: "a", Due: at(500)})
				for _, env := range pair {
					env.remove(env.all()...)
				}
			}
		},
	},
}

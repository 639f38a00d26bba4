package conformance

import (
	"sync"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

var indexChanges = []testCase[*indexEnv]{
	{
		name: "add/earlier-wins",
		rule: "Where the id is there already, the EARLIER of the two due times stays.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(100)})
			e.add(core.Entry{ID: "a", Due: at(50)})
			e.wantAll("an earlier time came second", core.Entry{ID: "a", Due: at(50)})
			e.add(core.Entry{ID: "a", Due: at(75)}, core.Entry{ID: "b", Due: at(1)})
			e.wantAll("a later time came second", core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "a", Due: at(50)})
			e.add(core.Entry{ID: "a", Due: at(49)})
			e.wantAll("a millisecond earlier", core.Entry{ID: "b", Due: at(1)}, core.Entry{ID: "a", Due: at(49)})
		},
	},
	{
		name: "add/earliest-of-many",
		rule: "The EARLIER due time stays also when many handles add the same id at once.",
		run: func(e *indexEnv) {
			var wg sync.WaitGroup
			for w := range 16 {
				e.spawn(&wg, func() {
					idx := []core.TimeIndex{e.idx, e.peer}[w%2]
					for i := range 20 {
						require.NoError(e, idx.Add(e.ctx, []core.Entry{{ID: "a", Due: at(10 + (w*7+i*13)%320)}}))
					}
				})
			}
			wg.Wait()
			e.wantAll("320 adds from 16 goroutines", core.Entry{ID: "a", Due: at(10)})
		},
	},
	{
		name: "move/compare",
		rule: "Move sets the due time, earlier or later, only where it is From at that instant; elsewhere the entry is left alone, without an error.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)})
			e.move(core.Move{ID: "a", From: at(11), To: at(99)}, core.Move{ID: "b", From: at(20), To: at(40)})
			e.wantAll("a stands elsewhere, b moves later", core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(40)})
			e.move(core.Move{ID: "b", From: at(40), To: at(5)}, core.Move{ID: "a", From: at(9), To: at(1)})
			e.wantAll("b moves earlier", core.Entry{ID: "b", Due: at(5)}, core.Entry{ID: "a", Due: at(10)})
		},
	},
	{
		name: "move/missing",
		rule: "Move leaves a missing entry missing, without an error.",
		run: func(e *indexEnv) {
			e.move(core.Move{ID: "a", From: at(1), To: at(2)})
			e.wantAll("an index that never had it")
			e.add(core.Entry{ID: "b", Due: at(1)})
			e.move(core.Move{ID: "a", From: at(1), To: at(2)}, core.Move{ID: "b", From: at(1), To: at(3)})
			e.wantAll("beside one that is there", core.Entry{ID: "b", Due: at(3)})
		},
	},
	{
		name: "move/repeat",
		rule: "A repeat of a Move leaves the same state.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(1)})
			for range 3 {
				e.move(core.Move{ID: "a", From: at(1), To: at(2)})
			}
			e.wantAll("moved three times", core.Entry{ID: "a", Due: at(2)})
			e.move(core.Move{ID: "a", From: at(2), To: at(2)})
			e.wantAll("moved to where it stood", core.Entry{ID: "a", Due: at(2)})
		},
	},
	{
		name: "move/one-winner",
		rule: "Of many Moves from the same due time at once exactly one takes effect.",
		run: func(e *indexEnv) {
			// Everyone moves from 0 to a target of their own and then a second later
			// from there: only the winner's second step finds its entry.
			e.add(core.Entry{ID: "a", Due: base})
			var wg sync.WaitGroup
			for w := range 16 {
				e.spawn(&wg, func() {
					idx := []core.TimeIndex{e.idx, e.peer}[w%2]
					require.NoError(e, idx.Move(e.ctx, []core.Move{{ID: "a", From: base, To: at(100 + w)}}))
				})
			}
			wg.Wait()
			first := e.all()
			require.Len(e, first, 1)
			for w := range 16 {
				e.move(core.Move{ID: "a", From: base, To: at(500 + w)})
			}
			e.wantAll("later Moves from the old due time", first...)
		},
	},
	{
		name: "remove/compare",
		rule: "Remove deletes an entry only where its due time is the one given; elsewhere it is left alone, without an error.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "c", Due: at(30)})
			e.remove(core.Entry{ID: "a", Due: at(11)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "x", Due: at(10)}, core.Entry{ID: "c", Due: at(29)})
			e.wantAll("only b stood where it said", core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "c", Due: at(30)})
		},
	},
	{
		name: "remove/anywhere",
		rule: "Remove with a zero Due deletes the entry wherever it stands, and no other; one that is missing is no error.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(10)}, core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "c", Due: at(30)}, core.Entry{ID: "d", Due: at(40)})
			e.remove(core.Entry{ID: "a"}, core.Entry{ID: "x"}, core.Entry{ID: "b", Due: at(21)}, core.Entry{ID: "c"})
			e.wantAll("a and c are gone; b stands elsewhere", core.Entry{ID: "b", Due: at(20)}, core.Entry{ID: "d", Due: at(40)})
			e.remove(core.Entry{ID: "a"}, core.Entry{ID: "d"})
			e.wantAll("a is gone already", core.Entry{ID: "b", Due: at(20)})
		},
	},
	{
		name: "remove/repeat",
		rule: "A repeat of a Remove leaves the same state; an id that was removed may be added again at any time.",
		run: func(e *indexEnv) {
			e.add(core.Entry{ID: "a", Due: at(10)})
			e.remove(core.Entry{ID: "a", Due: at(10)})
			e.remove(core.Entry{ID: "a", Due: at(10)})
			e.wantAll("removed twice")
			e.add(core.Entry{ID: "a", Due: at(99)})
			e.wantAll("added again, later than before", core.Entry{ID: "a", Due: at(99)})
			e.remove(core.Entry{ID: "a", Due: at(10)})
			e.wantAll("the old Remove repeated late", core.Entry{ID: "a", Due: at(99)})
		},
	},
	{
		name: "add/repeat",
		rule: "A repeat of an Add leaves the same state.",
		run: func(e *indexEnv) {
			entries := []core.Entry{{ID: "a", Due: at(1)}, {ID: "b", Due: at(2)}}
			for range 3 {
				e.add(entries...)
			}
			e.wantAll("added three times", entries...)
		},
	},
}

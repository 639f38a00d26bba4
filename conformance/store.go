package conformance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// Store says how to get at the core.Store under test.
type Store struct {
	// New returns a store without any task, its table made. It is called once a
	// case; what it opens it closes with t.Cleanup. A queue or table of its own in
	// one database is quicker than a database a case.
	New func(t *testing.T) core.Store
	// Peer returns a further handle on the data of first, as another process
	// would have it. Nil where there is no such thing: first then serves for all.
	Peer func(t *testing.T, first core.Store) core.Store
	// Lock locks a task's row as another transaction would, until unlock is
	// called. Nil where that can't be done: the cases of the group lock are then
	// not run.
	Lock func(t *testing.T, s core.Store, id core.ID) (unlock func())
	// Break makes the backend fail for the handle s, for others too if it must: no
	// new connection is made and those that stand are cut, until heal is called.
	// Nil where there is nothing that could fail: the cases of the group break are
	// then not run.
	Break func(t *testing.T, s core.Store) (heal func())
	// Hold takes the one lock that every write of the backend needs, or all of them,
	// as another process would, until release is called: the write lock of a file, a
	// table's lock, a line that passes nothing on (see Line). Nil where there is none:
	// the cases of the group hold are then not run.
	Hold func(t *testing.T, s core.Store) (release func())
	// Idle returns an error that says what the handle s holds or has open while no
	// method runs: a transaction, a lock, a cursor, a connection that isn't back in its
	// pool (sql.DBStats.InUse). It is asked after each case. Nil where nobody can tell.
	Idle func(t *testing.T, s core.Store) error
	// Begin starts a transaction of a user's own in the store's database. Nil where
	// the store has no methods for that: the cases of the group tx are then not run.
	Begin func(t *testing.T, s core.Store) Tx
	// Wrote tells whether Tx.Write with that key was committed. It is needed where
	// Begin is there.
	Wrote func(t *testing.T, s core.Store, key string) bool
	// Neighbour returns a handle on another queue beside that of first: in the same
	// table, by the same connections. It has no task yet, and Begin and Wrote take
	// it too. Nil where there is nothing that two queues share: the cases of the
	// group queue are then not run.
	Neighbour func(t *testing.T, first core.Store) core.Store
	// Variant marks a further configuration of a store that goes through the suite
	// in another one as well: cases that prove something by large numbers then make
	// do with smaller ones, also with DUECLAIM_STRESS.
	Variant bool
	// Provides declares the optional capabilities, checked both ways.
	Provides StoreProvides
	// Skip maps the name of a case (group/what) to the reason why this store
	// can't keep its rule. A name that no case has fails.
	Skip map[string]string
}

// Tx is a transaction of a user's own, with the methods that a store has for it.
type Tx interface {
	// Insert is the store's InsertTx.
	Insert(ctx context.Context, call core.Call, tasks []core.Task) error
	// Settle is the store's SettleTx.
	Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error
	// Write reads the user's own table, which in a transaction with one snapshot
	// takes it, and then writes a row under key, which is new.
	Write(ctx context.Context, key string) error
	Commit(ctx context.Context) error
	// Rollback gives the transaction up; after a Commit it does nothing.
	Rollback()
}

// StoreProvides declares a store's optional capabilities.
type StoreProvides struct {
	TimeSource bool // core.TimeSource
	Purger     bool // core.Purger
	// KeepsFinished: done and cancelled tasks stay until they are purged or
	// replaced. False for a store that deletes them at once.
	KeepsFinished bool
}

// TestStore runs every case for a Store, those of TestClaimer among them, as a
// subtest of t.
func TestStore(t *testing.T, store Store) {
	t.Helper()
	testStore(t, store, newSettings(store.provides(), store.Skip))
}

func (x Store) provides() map[string]bool {
	return map[string]bool{
		"TimeSource": x.Provides.TimeSource, "Purger": x.Provides.Purger,
		"KeepsFinished": x.Provides.KeepsFinished,
		"Lock":          x.Lock != nil, "Break": x.Break != nil, "Hold": x.Hold != nil, "Tx": x.Begin != nil,
		"Neighbour": x.Neighbour != nil,
	}
}

func testStore(t *testing.T, store Store, s settings) {
	t.Helper()
	require.NotNil(t, store.New, "conformance.Store.New is nil")
	require.Equal(t, store.Begin == nil, store.Wrote == nil, "conformance.Store.Begin and Wrote go together")
	claims, stores := claimerCases(), storeCases()
	s.checkSkip(t, slices.Concat(names(claims), names(stores)))
	claimer := store.claimer()
	runCases(t, s, claims, claimer.env)
	runCases(t, s, stores, func(t *testing.T, c *caseT) *storeEnv {
		e := &storeEnv{claimEnv: claimer.env(t, c), storeProvides: store.Provides}
		e.s, e.peerStore = e.c.(core.Store), e.peer.(core.Store)
		e.beginTx = func(s core.Store) Tx {
			return made(c, "conformance.Store.Begin", func() Tx { return store.Begin(t, s) })
		}
		e.wrote = func(key string) bool { return store.Wrote(t, e.s, key) }
		return e
	})
}

// claimer is the store seen as a Claimer into which Insert puts the tasks.
func (x Store) claimer() Claimer {
	c := Claimer{
		New:      func(t *testing.T) core.Claimer { return x.New(t) },
		store:    true,
		Variant:  x.Variant,
		Provides: ClaimerProvides{TimeSource: x.Provides.TimeSource, KeepsFinished: x.Provides.KeepsFinished},
	}
	if x.Peer != nil {
		c.Peer = func(t *testing.T, first core.Claimer) core.Claimer {
			return x.Peer(t, first.(core.Store))
		}
	}
	if x.Lock != nil {
		c.Lock = func(t *testing.T, c core.Claimer, id core.ID) func() { return x.Lock(t, c.(core.Store), id) }
	}
	if x.Neighbour != nil {
		c.Neighbour = func(t *testing.T, first core.Claimer) core.Claimer {
			return x.Neighbour(t, first.(core.Store))
		}
	}
	if x.Break != nil {
		c.Break = func(t *testing.T, c core.Claimer) func() { return x.Break(t, c.(core.Store)) }
	}
	if x.Hold != nil {
		c.Hold = func(t *testing.T, c core.Claimer) func() { return x.Hold(t, c.(core.Store)) }
	}
	if x.Idle != nil {
		c.Idle = func(t *testing.T, c core.Claimer) error { return x.Idle(t, c.(core.Store)) }
	}
	return c
}

func storeCases() []testCase[*storeEnv] {
	var all []testCase[*storeEnv]
	for _, group := range [][]testCase[*storeEnv]{
		storeBasics, storeInserts, storeInsertRepeats, storeRepeats, storeReuses, storeBys, storeCancels, storeReschedules, storePurges,
		storeBatches, storeBoundaries, storeRaces, storeContexts, storeLocks, storeHolds, storeLockedRows, storeBreaks, storeTxInserts, storeTxSettles, storeTxSnapshots, storeQueues,
	} {
		all = append(all, group...)
	}
	return all
}

// storeEnv is what a case for a Store works with.
type storeEnv struct {
	*claimEnv
	s, peerStore  core.Store
	beginTx       func(s core.Store) Tx
	wrote         func(key string) bool
	storeProvides StoreProvides
}

// call returns a new call made at now.
func (e *storeEnv) call(now time.Time) core.Call {
	return core.Call{ID: e.unique("call"), Now: now}
}

// insert inserts under a call of its own, which must succeed.
func (e *storeEnv) insert(list ...core.Task) core.Call {
	call := e.call(base)
	require.NoError(e, e.s.Insert(e.ctx, call, list), "Insert")
	return call
}

// finish takes a new task to its end: "cancelled", "done" or "dead". It returns
// the last grant, zero where it was cancelled while pending.
func (e *storeEnv) finish(id core.ID, end string) core.Grant {
	e.insert(task(id, base))
	if end == "cancelled" {
		_, err := e.s.Cancel(e.ctx, core.Call{Now: at(1)}, []core.ID{id})
		require.NoError(e, err, "Cancel")
		return core.Grant{}
	}
	c := e.grant(e.lease(base), id)
	outcome := map[string]core.Outcome{"done": core.Done, "dead": core.DeadLetter}[end]
	e.settle(at(1), core.Settlement{Grant: c.Grant, Outcome: outcome})
	return c.Grant
}

// cancel cancels and checks the answer's form.
func (e *storeEnv) cancel(s core.Store, now time.Time, ids ...core.ID) []core.Fate {
	got, err := s.Cancel(e.ctx, core.Call{Now: now}, ids)
	require.NoError(e, err, "Cancel")
	require.Len(e, got, len(ids), "one fate an id")
	return got
}

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// Index says how to get at the TimeIndex under test.
type Index struct {
	// New returns an empty index. It is called once a case; what it opens it
	// closes with t.Cleanup.
	New func(t *testing.T) core.TimeIndex
	// Peer returns a second handle on the data of first, as another process
	// would have it. Nil where there is no such thing: first then serves twice.
	Peer func(t *testing.T, first core.TimeIndex) core.TimeIndex
	// Break makes the backend fail for the handle idx, for others too if it must:
	// no new connection is made and those that stand are cut, until heal is called.
	// Nil where there is nothing that could fail: the cases of the group break are
	// then not run.
	Break func(t *testing.T, idx core.TimeIndex) (heal func())
	// Hold takes the one lock that every write of the backend needs, or all of them,
	// as another process would, until release is called: the write lock of a file, a
	// table's lock, a pause of the server, a line that passes nothing on (see Line).
	// Nil where there is none: the cases of the group hold are then not run.
	Hold func(t *testing.T, idx core.TimeIndex) (release func())
	// Idle returns an error that says what the handle idx holds or has open while no
	// method runs: a transaction, a lock, a cursor, a connection that isn't back in its
	// pool (sql.DBStats.InUse). It is asked after each case. Nil where nobody can tell.
	Idle func(t *testing.T, idx core.TimeIndex) error
	// Lose makes the index of the handle idx lose all its entries at once, as a flush
	// of its server would. Nil where there is no such thing: the case losses/lost is
	// then not run.
	Lose func(t *testing.T, idx core.TimeIndex)
	// Neighbour returns another index beside first, on the same server: that of
	// another queue. It has no entry yet. Nil where there is nothing that two
	// indexes share: the cases of the group queue are then not run.
	Neighbour func(t *testing.T, first core.TimeIndex) core.TimeIndex
	// Provides declares the optional capabilities. It is checked both ways: what
	// is declared must be there, what isn't must not.
	Provides IndexProvides
	// Skip maps the name of a case (group/what) to the reason why this index
	// can't keep its rule. A name that no case has fails.
	Skip map[string]string
}

// IndexProvides declares an index's optional capabilities.
type IndexProvides struct {
	Taker    bool // core.Taker
	Watcher  bool // core.Watcher
	Restorer bool // core.Restorer
	Detector bool // core.Detector, with a name to tell
	Lister   bool // core.Lister, which lists what is there
}

// TestIndex runs every case for a TimeIndex as a subtest of t.
func TestIndex(t *testing.T, index Index) {
	t.Helper()
	testIndex(t, index, newSettings(index.provides(), index.Skip))
}

func (x Index) provides() map[string]bool {
	return map[string]bool{
		"Taker": x.Provides.Taker, "Watcher": x.Provides.Watcher, "Restorer": x.Provides.Restorer, "Detector": x.Provides.Detector, "Lister": x.Provides.Lister,
		"Break": x.Break != nil, "Hold": x.Hold != nil, "Lose": x.Lose != nil, "Neighbour": x.Neighbour != nil,
	}
}

func testIndex(t *testing.T, index Index, s settings) {
	t.Helper()
	require.NotNil(t, index.New, "conformance.Index.New is nil")
	cases := indexCases()
	s.checkSkip(t, names(cases))
	runCases(t, s, cases, func(t *testing.T, c *caseT) *indexEnv {
		first := made(c, "conformance.Index.New", func() core.TimeIndex { return index.New(t) })
		peer := first
		if index.Peer != nil {
			peer = made(c, "conformance.Index.Peer", func() core.TimeIndex { return index.Peer(t, first) })
		}
		e := &indexEnv{caseT: c, idx: first, peer: peer, provides: index.Provides}
		e.breakIt = func() func() {
			return c.release(made(c, "conformance.Index.Break", func() func() { return index.Break(t, first) }))
		}
		e.hold = func() func() {
			return c.release(made(c, "conformance.Index.Hold", func() func() { return index.Hold(t, first) }))
		}
		e.lose = func() { index.Lose(t, first) }
		if index.Idle != nil {
			c.idle = func() error { return errors.Join(index.Idle(t, first), index.Idle(t, peer)) }
		}
		e.neighbour = func() core.TimeIndex {
			return made(c, "conformance.Index.Neighbour", func() core.TimeIndex { return index.Neighbour(t, first) })
		}
		return e
	})
}

func indexCases() []testCase[*indexEnv] {
	var all []testCase[*indexEnv]
	for _, group := range [][]testCase[*indexEnv]{
		indexBasics, indexMemory, indexBytes, indexChanges, indexBatches, indexBoundaries, indexTakes, indexRestores, indexLists, indexLosses, indexWatches, indexContexts, indexHolds, indexBreaks, indexQueues,
	} {
		all = append(all, group...)
	}
	return all
}

// indexEnv is what a case for a TimeIndex works with.
type indexEnv struct {
	*caseT
	idx, peer core.TimeIndex
	breakIt   func() (heal func())
	hold      func() (release func())
	lose      func()
	neighbour func() core.TimeIndex
	provides  IndexProvides
}

func (e *indexEnv) add(entries ...core.Entry) {
	require.NoError(e, e.idx.Add(e.ctx, entries), "Add")
}

func (e *indexEnv) move(moves ...core.Move) {
	require.NoError(e, e.idx.Move(e.ctx, moves), "Move")
}

func (e *indexEnv) remove(entries ...core.Entry) {
	require.NoError(e, e.idx.Remove(e.ctx, entries), "Remove")
}

// endOfTime is after every due time.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// all returns every entry, as the other handle sees them.
func (e *indexEnv) all() []core.Entry {
	entries, err := e.peer.Due(e.ctx, endOfTime, 100_000)
	require.NoError(e, err, "Due")
	return entries
}

// wantAll fails unless the index holds exactly these entries.
func (e *indexEnv) wantAll(about string, want ...core.Entry) {
	e.wantEntries(want, e.all(), "%s", about)
}

func (e *indexEnv) take(idx core.TimeIndex, now, until time.Time, limit int) ([]core.ID, time.Time) {
	ids, next, err := idx.(core.Taker).Take(e.ctx, now, until, limit)
	require.NoError(e, err, "Take")
	return ids, next
}

func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

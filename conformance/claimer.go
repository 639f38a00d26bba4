package conformance

import (
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Claimer says how to get at a core.Claimer that doesn't keep the tasks itself:
// one on a table of the user's own. A core.Store goes through TestStore.
type Claimer struct {
	// New returns a claimer without any task. It is called once a case; what it
	// opens it closes with t.Cleanup.
	New func(t *testing.T) core.Claimer
	// Peer returns a further handle on the data of first, as another process
	// would have it. Nil where there is no such thing: first then serves for all.
	Peer func(t *testing.T, first core.Claimer) core.Claimer
	// Put makes rows of tasks, pending, in whatever way tasks come to be there.
	Put func(t *testing.T, c core.Claimer, tasks []core.Task)
	// Lock locks a task's row as another transaction would, until unlock is
	// called. Nil where that can't be done: the cases of the group lock are then
	// not run.
	Lock func(t *testing.T, c core.Claimer, id core.ID) (unlock func())
	// Break makes the backend fail for the handle c, for others too if it must: no
	// new connection is made and those that stand are cut, until heal is called.
	// Nil where there is nothing that could fail: the cases of the group break are
	// then not run.
	Break func(t *testing.T, c core.Claimer) (heal func())
	// Hold takes the one lock that every write of the backend needs, or all of them,
	// as another process would, until release is called: the write lock of a file, a
	// table's lock, a line that passes nothing on (see Line). Nil where there is none:
	// the cases of the group hold are then not run.
	Hold func(t *testing.T, c core.Claimer) (release func())
	// Idle returns an error that says what the handle c holds or has open while no
	// method runs: a transaction, a lock, a cursor, a connection that isn't back in its
	// pool (sql.DBStats.InUse). It is asked after each case. Nil where nobody can tell.
	Idle func(t *testing.T, c core.Claimer) error
	// Neighbour returns a handle on another queue beside that of first: in the same
	// table, by the same connections. It has no task yet. Nil where there is nothing
	// that two queues share: the cases of the group queue are then not run.
	Neighbour func(t *testing.T, first core.Claimer) core.Claimer
	// Variant marks a further configuration of a claimer that goes through the
	// suite in another one as well: cases that prove something by large numbers
	// then make do with smaller ones, also with DUECLAIM_STRESS.
	Variant bool
	// Provides declares the optional capabilities, checked both ways.
	Provides ClaimerProvides
	// Skip maps the name of a case (group/what) to the reason why this claimer
	// can't keep its rule. A name that no case has fails.
	Skip map[string]string
	// Weaker maps the name of a case to the reason why this claimer, by its promises,
	// doesn't keep the rule, or not all of it. The case is run and must fail: a
	// weaker promise is declared, or it is a bug.
	Weaker map[string]string

	store bool // this is a Store, whose tasks Insert puts there
}

// hook is the name of a field, as its users know it.
func (x Claimer) hook(field string) string {
	if x.store {
		return "conformance.Store." + field
	}
	return "conformance.Claimer." + field
}

// ClaimerProvides declares a claimer's optional capabilities.
type ClaimerProvides struct {
	TimeSource bool // core.TimeSource
	// KeepsFinished: the row of a done task stays for a while, so that a repeated
	// Settle finds it.
	KeepsFinished bool
	// OwnRows: the rows are the user's own and have no place for Task.Meta and
	// Task.MaxAttempts, which are empty and 0.
	OwnRows bool
	// Undated: core.Undated is there and says true.
	Undated bool
	// Uncounted: the store doesn't count grants: Attempt is 0 in each answer.
	Uncounted bool
}

// TestClaimer runs every case for a Claimer as a subtest of t.
func TestClaimer(t *testing.T, claimer Claimer) {
	t.Helper()
	s := newSettings(claimer.provides(), claimer.Skip)
	s.weaker = claimer.Weaker
	testClaimer(t, claimer, s)
}

func (x Claimer) provides() map[string]bool {
	return map[string]bool{
		"TimeSource": x.Provides.TimeSource, "KeepsFinished": x.Provides.KeepsFinished,
		"Undated": x.Provides.Undated, "Uncounted": x.Provides.Uncounted,
		"Lock": x.Lock != nil, "Break": x.Break != nil, "Hold": x.Hold != nil, "Neighbour": x.Neighbour != nil,
	}
}

func testClaimer(t *testing.T, claimer Claimer, s settings) {
	t.Helper()
	require.NotNil(t, claimer.New, "conformance.Claimer.New is nil")
	require.NotNil(t, claimer.Put, "conformance.Claimer.Put is nil")
	cases := claimerCases()
	s.checkSkip(t, names(cases))
	runCases(t, s, cases, claimer.env)
}

func claimerCases() []testCase[*claimEnv] {
	var all []testCase[*claimEnv]
	for _, group := range [][]testCase[*claimEnv]{
		claimBasics, claimMemory, claimTimes, claimGrants, claimBatches, claimBoundaries, claimContention, claimTokens, claimBys, claimExtends, claimSettles, claimSettleRepeats,
		claimWaiting, claimBacklogs, claimContexts, claimLocks, claimHolds, claimBreaks, claimQueues,
	} {
		all = append(all, group...)
	}
	return all
}

// claimEnv is what a case for a Claimer works with.
type claimEnv struct {
	*caseT
	c, peer   core.Claimer
	more      func() core.Claimer // one more handle
	neighbour func() core.Claimer // another queue
	put       func(tasks ...core.Task)
	putIn     func(c core.Claimer, tasks []core.Task)
	lock      func(id core.ID) (unlock func())
	breakIt   func() (heal func())
	hold      func() (release func())
	shaken    bool // breakIt was called
	variant   bool
	provides  ClaimerProvides
}

func (x Claimer) env(t *testing.T, c *caseT) *claimEnv {
	first := made(c, x.hook("New"), func() core.Claimer { return x.New(t) })
	e := &claimEnv{caseT: c, c: first, peer: first, variant: x.Variant, provides: x.Provides}
	e.more = func() core.Claimer {
		if x.Peer == nil {
			return first
		}
		return made(c, x.hook("Peer"), func() core.Claimer { return x.Peer(t, first) })
	}
	e.peer = e.more()
	e.putIn = func(into core.Claimer, tasks []core.Task) {
		if x.store {
			call := core.Call{ID: rand.Text(), Now: base.Add(-time.Minute)}
			require.NoError(c, into.(core.Store).Insert(c.ctx, call, tasks), "Insert")
			return
		}
		c.enter("the hook " + x.hook("Put"))
		x.Put(t, into, tasks)
		c.enter("")
	}
	e.put = func(tasks ...core.Task) { e.putIn(first, tasks) }
	e.neighbour = func() core.Claimer {
		return made(c, x.hook("Neighbour"), func() core.Claimer { return x.Neighbour(t, first) })
	}
	e.lock = func(id core.ID) func() {
		return e.release(made(c, x.hook("Lock"), func() func() { return x.Lock(t, first, id) }))
	}
	e.breakIt = func() func() {
		e.shaken = true
		return e.release(made(c, x.hook("Break"), func() func() { return x.Break(t, first) }))
	}
	e.hold = func() func() { return e.release(made(c, x.hook("Hold"), func() func() { return x.Hold(t, first) })) }
	if x.Idle != nil {
		c.idle = func() error { return errors.Join(x.Idle(t, first), x.Idle(t, e.peer)) }
	}
	return e
}

// stress asks for the large numbers, whatever they cost.
func stress() bool { return os.Getenv("DUECLAIM_STRESS") != "" }

// scale returns how many items a case uses that proves something by its numbers.
func (e *claimEnv) scale(full, variant int) int {
	if e.variant {
		return variant
	}
	return full
}

// leaseFor is how long the leases of most cases last.
const leaseFor = 30 * time.Second

// task returns a task with something in each field.
func task(id core.ID, due time.Time) core.Task {
	return core.Task{
		ID: id, Kind: "mail", Payload: []byte("payload of " + id), Meta: []byte{1}, Due: due, MaxAttempts: 7,
	}
}

// kept is what the claimer keeps of a task.
func (e *claimEnv) kept(t core.Task) core.Task {
	if e.provides.OwnRows {
		t.Meta, t.MaxAttempts = nil, 0
	}
	return t
}

// attempt is what Attempt is where the grant is the nth that counts.
func (e *claimEnv) attempt(n int) int {
	if e.provides.Uncounted {
		return 0
	}
	return n
}

func tasks(ids []core.ID, due time.Time) []core.Task {
	list := make([]core.Task, len(ids))
	for i, id := range ids {
		list[i] = task(id, due)
	}
	return list
}

// lease returns a lease with a holder of its own for what is due at now.
func (e *claimEnv) lease(now time.Time) core.Lease {
	return core.Lease{Holder: e.unique("holder"), Now: now, DueBy: now, Until: now.Add(leaseFor)}
}

// claim claims and checks the answer's form: one verdict an id, in their order.
func (e *claimEnv) claim(c core.Claimer, lease core.Lease, ids ...core.ID) []core.Claimed {
	var got []core.Claimed
	err := e.surely(func() (err error) { got, err = c.Claim(e.ctx, ids, lease); return err })
	require.NoError(e, err, "Claim")
	e.wantForm(got, lease, ids)
	return got
}

// surely makes a call that must succeed at once, or, when the backend has failed
// in this case, after some repeats: what stands between may take a moment longer
// to recover, and an error is an unknown outcome still.
func (e *claimEnv) surely(call func() error) error {
	if e.shaken {
		return e.insist(call)
	}
	return call()
}

func (e *claimEnv) wantForm(got []core.Claimed, lease core.Lease, ids []core.ID) {
	require.Len(e, got, len(ids), "one verdict an id")
	for i, c := range got {
		require.Equal(e, ids[i], c.ID, "verdict %d: verdicts come in the order of ids", i)
		require.True(e, c.Verdict >= core.Granted && c.Verdict <= core.Refused, "verdict %d is %d, none of the five", i, c.Verdict)
		if c.Verdict == core.Granted {
			require.Equal(e, core.Grant{ID: ids[i], Token: c.Grant.Token, Holder: lease.Holder}, c.Grant, "Grant")
			require.Equal(e, ids[i], c.Task.ID, "Task.ID")
			if e.provides.Uncounted {
				require.Zero(e, c.Attempt, "Attempt of a store that doesn't count")
			} else {
				require.GreaterOrEqual(e, c.Attempt, 1, "Attempt counts this grant too")
			}
		}
	}
}

// grant claims one id on the first handle, which must succeed.
func (e *claimEnv) grant(lease core.Lease, id core.ID) core.Claimed {
	return e.grantAll(lease, id)[0]
}

// grantAll claims ids on the first handle, each of which must succeed.
func (e *claimEnv) grantAll(lease core.Lease, ids ...core.ID) []core.Claimed {
	got := e.claim(e.c, lease, ids...)
	for _, c := range got {
		require.Equal(e, core.Granted.String(), c.Verdict.String(), "verdict for %q (At %s)", c.ID, stamp(c.At))
		require.Equal(e, stamp(lease.Until), stamp(c.At), "At of a granted %q is the end of its lease", c.ID)
	}
	return got
}

// wantVerdict fails unless the claim was answered so; at is ignored where the
// contract gives no At for the verdict.
func (e *claimEnv) wantVerdict(got core.Claimed, want core.Verdict, at time.Time, about string) {
	assert.Equal(e, want.String(), got.Verdict.String(), "%s: verdict for %q (At %s)", about, got.ID, stamp(got.At))
	if want == got.Verdict && want != core.Gone && want != core.Refused {
		e.wantTime(at, got.At, "%s: At of %q", about, got.ID)
	}
}

func (e *claimEnv) settle(now time.Time, settlements ...core.Settlement) {
	require.NoError(e, e.surely(func() error { return e.c.Settle(e.ctx, now, settlements) }), "Settle")
}

// waiting returns all that waits at now, as the other handle sees it.
func (e *claimEnv) waiting(now time.Time) []core.Entry {
	var got []core.Entry
	err := e.surely(func() (err error) {
		got, err = e.peer.Waiting(e.ctx, now, core.Entry{}, endOfTime, 100_000)
		return err
	})
	require.NoError(e, err, "Waiting")
	return got
}

func (e *claimEnv) wantWaiting(now time.Time, about string, want ...core.Entry) {
	e.wantEntries(want, e.waiting(now), "%s: waiting rows", about)
}

// handles returns n handles, no two of them the same where the backend has
// peers.
func (e *claimEnv) handles(n int) []core.Claimer {
	list := []core.Claimer{e.c, e.peer}
	for len(list) < n {
		list = append(list, e.more())
	}
	return list
}

// Package conformance proves that a backend keeps dueclaim's contract.
//
// An adapter's author calls one function from a test:
//
//	func TestConformance(t *testing.T) {
//		conformance.TestIndex(t, conformance.Index{
//			New:      func(t *testing.T) core.TimeIndex { return freshIndex(t) },
//			Peer:     func(t *testing.T, first core.TimeIndex) core.TimeIndex { return secondHandle(t, first) },
//			Provides: conformance.IndexProvides{Taker: true},
//		})
//	}
//
// and learns what is right, what is wrong and which rule says so. [TestIndex]
// is for a [core.TimeIndex], [TestStore] for a [core.Store], [TestClaimer] for
// a [core.Claimer] that keeps no tasks of its own, [TestScheduler] for the main job
// on a pair of one index and one store, on parts that lose entries and replies
// too. [TestSQL] checks a store on database/sql statement by statement against a
// script, without a server; package conformance/sqlmocked plays the scripts on
// go-sqlmock. Package conformance/history plays random histories of calls, one
// after another against a naive oracle and concurrent ones for linearizability.
// [BenchmarkIndex] and [BenchmarkClaimer] measure every method; [FaultyIndex],
// [FaultyClaimer] and [FaultyStore] put faults around any part, in tests of your
// own as well.
//
// Every case checks one rule, a MUST of the contract. The rule is printed when
// the case fails and is set as the test attribute "dueclaim.rule", its group as
// "dueclaim.group", so that `go test -json` yields a table of backends and
// rules. A case gets a fresh instance, and a watchdog ends it, with the stacks
// of all goroutines, when it hangs.
//
// Almost every instant in a case is made up (the contract passes them as
// arguments), so that leases end without waiting. Contended cases repeat a call
// whose outcome is unknown with the same arguments, as core does: a lost
// deadlock or a serialization failure is no defect.
//
// With the hooks Lock, Hold, Break, Begin and Neighbour the suite also locks rows or
// the whole backend, cuts the backend off, runs users' own transactions and works on
// two queues side by side; without one of them its group of cases is reported as not
// provided. With Idle it sees after each case that nothing is held or open. [Line] is a
// way to a server that a test may cut and hold up.
//
// A few cases prove something by numbers and are the slow ones: a further
// configuration of the same backend says Variant and gets smaller numbers, and with
// the environment's DUECLAIM_STRESS everything gets the largest.
//
// What the cases can't prove from outside: that a lost reply is mended by a repeat at
// any byte of the protocol, that rows are found by the primary key, and how many
// statements a batch costs. TestSQL proves some of it for database/sql; the rest is
// the adapter's own tests.
//
// # What doubles can't prove
//
// TestSQL has no server behind it. A statement's text is compared, not
// understood: that a server parses it, finds its rows by the right index, and
// that the guard in it holds is not shown. Nor are locks and their order, SKIP
// LOCKED, isolation levels, collations (are "a" and "A" one id?), column types
// and what they cut or round, triggers, and what autocommit and a commit make
// durable. Errors are put in by hand: which ones a real driver returns, when it
// reconnects, repeats or prepares by itself, and how it encodes arguments is left
// out. (A store that asks its driver what it can do takes its other way here:
// pgclaim runs in the mode for a driver that it doesn't know.) The rows that a
// script answers are what its author believes; a wrong belief passes.
//
// An index on miniredis goes through all of TestIndex; that shows nothing about
// eviction, fail-over, persistence, a cluster's slots, script time-outs or the
// limits of a real server's Lua. So every double stands beside the same adapter's
// run of the suite on real servers, never in its place.
package conformance

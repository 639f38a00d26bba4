// Package seededbugs has no code, only tests: mistakes that are put into the real
// core and adapters, one at a time, and must be noticed by the tests that hold the
// promises.
//
// Tests that never fail show nothing. Each bug here is one that somebody could make,
// in a place where it costs users tasks, or runs them twice. It replaces a piece of
// a source file by way of go test's -overlay, so that nothing of it is ever in the
// production code, and the tests meant to catch it run as they are, with their small
// counts, in a process of their own. Caught means that a test failed: not a build, not
// a time-out. The same tests pass without the bug, which is tried first.
//
// A bug counts when two kinds of tests catch it, of: histories against a model,
// simulations in virtual time, the search through all states of the protocol, calls
// of unknown outcome, chaos with real processes, and known faults of other systems.
//
// With DUECLAIM_STRESS all bugs are tried, each until two kinds have caught it; else
// one that is chosen at random, with its quickest test, among those that need no
// server. DUECLAIM_BUG=name tries that one, with all of its tests.
package seededbugs

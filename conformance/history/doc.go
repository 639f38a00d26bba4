// Package history plays seeded random histories of calls on a backend and
// compares what it answers with what dueclaim's contract allows. The cases of
// package conformance check one rule each; these find what comes of several.
//
// [TestIndex], [TestStore] and [TestClaimer] make one call after the other,
// through two handles, with few ids and few instants, so that calls meet: repeats,
// stale grants, lapsed leases, ids used again. The plainest right implementation is
// asked the same, and the answers must agree after every step. A history that fails
// is made as small as can be before it is printed.
//
// [TestLinearizable] makes calls from many goroutines at once, loses some of the
// replies and repeats their calls, as core does. Afterwards it looks, for each id by
// itself, for one order of the calls that explains every answer.
//
// Every run prints its seed; -rapid.seed=N plays it again. The package is one of
// its own because it imports pgregory.net/rapid and
// github.com/anishathalye/porcupine.
package history

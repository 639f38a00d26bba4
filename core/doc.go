// Package core is the contract between dueclaim's parts and the one copy of
// the logic that they share.
//
// Three parts make a delayed-task system:
//
//   - a [TimeIndex] says when to look: which task ids are due;
//   - a [Claimer] (or a [Store], which also keeps the tasks) says who may run:
//     a conditional write in a database decides which worker gets a task;
//   - a [Scheduler] composes one of each and runs handlers; a [Producer]
//     schedules, cancels and reschedules.
//
// Programs start with [NewProducer], [Mux] and [New]; who adds a backend starts
// with [TimeIndex] or [Store].
//
// Three sentences carry the design:
//
//  1. The index says when to look; only the claim store says who may run. A
//     wrong, late, doubled or lost index entry costs time or a wasted claim,
//     never a double run.
//  2. Every write goes to the store first, then to the index. A crash between
//     the two leaves a task that the next sweep of the store finds.
//  3. A granted task stays in the index, moved to the end of its lease. A
//     crashed worker needs no reaper: the entry comes due again and somebody
//     claims it.
//
// What is promised: at least one run of each task; one holder for each (id,
// token); at most one completion recorded; never a start before the due time by
// the store's clock. Exactly once holds only for effects that are committed in
// the same database transaction as the completion (see [Settled]).
//
// The package imports the standard library only.
package core

// Package model has no code, only tests: a small model of the claim protocol, whose
// states are all visited.
//
// Two workers, one or two tasks, an index, a network. A state is what the store's
// rows, the index and the workers hold, and the messages that are still under way; an
// action is one atomic step of one of them. A breadth-first search goes through every
// order of the actions, among them all that can go wrong: crashes, pauses, lost
// replies, messages that take effect after their sender gave up, lost and stale index
// entries. The store's transitions are those of claim.Row, which claim.Memory runs too.
//
// Checked in each state and step: nobody takes a live lease over, tokens rise, an
// older holder's settlement or extension is never accepted, a completion is recorded
// once, and two workers that aren't paused never run the same task. And from each
// state the end can be reached without a further fault: all tasks done, the index
// empty, nobody with anything in hand.
//
// Time is counted in ticks and tokens are only compared, so a state keeps them
// relative: how long ago, and whether it is the newest. So there are finitely many
// states without any bound on time, tokens or faults. What is bounded: messages
// under way that nobody waits for any more (and how old they get: older than any
// lease), retries, and, with two tasks, faults.
//
// A tick doesn't pass while a worker that isn't paused has a handler beyond its
// deadline: that is the one thing a worker must do in time, and does by its own
// clock.
package model

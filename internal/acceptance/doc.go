// Package acceptance has no code, only tests: the measured proofs of what the
// README promises about time and about crashes, on real servers, with worker
// processes that are killed, stopped and starved.
//
// Its tests print what they measured, one line each, so that the log of a run is
// also a report. A bound that other programs on the machine can break (lateness)
// is measured again, up to three times, before it fails; a task that is lost or
// runs twice fails at once. DUECLAIM_STRESS=1 does more rounds and longer ones.
package acceptance

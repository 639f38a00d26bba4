// Package simulation has no code, only tests: whole systems in virtual time, one
// for each seed, with faults that no real server can be made to have on demand.
//
// In one bubble of testing/synctest run four schedulers and two producers on one
// claim.Memory and one heap that stands for Redis. Each has wrappers of its own
// around both, which refuse calls, lose replies, let effects happen long after the
// call was answered, slow calls down, lose and double index entries. A nemesis
// kills and restarts processes, stops and continues them, cuts them off, flushes
// the index, brings an old snapshot of it back and sets the store's clock. An
// oracle between the wrappers and the store sees what each call changed and judges
// it by rules of its own. Then the faults stop, and everything must end.
//
// # Replay
//
// A failing run prints its seed; DUECLAIM_SEED=n runs that one alone and logs what
// happened to the ids concerned. What a seed decides: the system's settings, the
// tasks, the nemesis's steps and, for each process and kind of call, what happens
// to the first, second, third … call.
//
// What it doesn't decide: the order in which goroutines run that are ready at the
// same virtual instant, Go's choice among several ready cases of a select, the
// order of maps, and the jitter of core's pauses, which comes from the runtime's
// random numbers. GOMAXPROCS=1 takes away only part of the first. So a replay is the
// same plan and not the same run. A failure that doesn't come back at once is to be
// looked for with DUECLAIM_SEED=n and -count=100.
//
// # What it can't show
//
// A stopped process is stopped where it touches something outside of it: its calls
// and its handlers stand still, while core's own timers go on. That is a process
// whose goroutines were delayed one by one, which is more than a SIGSTOP can do, but
// not all that it does; the tests with real processes are for that. All processes
// share the bubble's monotonic clock, so clocks that run at different speeds are not
// simulated.
package simulation

// Package chaos has no code, only tests: worker processes and producers at work on
// real servers, while workers, connections, Redis and the database are killed,
// stopped and spoilt by a schedule that a seed drives.
//
// Each run prints its seed and is replayed with it, as far as processes and servers
// can be, by DUECLAIM_CHAOS_SEED. It reports the operations, the faults injected of
// each kind (a run that injected none of a kind that it lists fails), how unknown
// outcomes turned out, take-overs, overlaps and lateness. With DUECLAIM_STRESS the
// counts are the full ones, else a small share of them.
package chaos

package simulation

// kind names what is counted: a fault, or what came of faults.
type kind string

// What the gates do to calls.
const (
	refuse    kind = "refused calls"
	lose      kind = "lost replies"
	late      kind = "late effects"
	lateTimed kind = "late effects after a deadline"
	slow      kind = "slow calls"
	swallow   kind = "calls of killed processes"
	hang      kind = "calls of stopped processes"
	cutOff    kind = "calls while cut off"
)

// What the nemesis does.
const (
	crash       kind = "crashes"
	graceful    kind = "shutdowns"
	stop        kind = "stops"
	stopLong    kind = "stops beyond the lease"
	cutStore    kind = "store cut off"
	cutIndex    kind = "index cut off"
	flush       kind = "index flushes"
	restore     kind = "index restores"
	rob         kind = "index robberies"
	stepForward kind = "clock steps forward"
	stepBack    kind = "clock steps back"
)

// What came of it.
const (
	takeOver          kind = "take-overs"
	refusedSettlement kind = "refused settlements"
	overlapDeaf       kind = "overlaps (handler ignores its context)"
	overlapStopped    kind = "overlaps (process was stopped)"
	overlapStep       kind = "overlaps (clock was set)"
	overlapReused     kind = "overlaps (cancelled, id used again)"
	overlapOther      kind = "overlaps (else)"
	unknownStored     kind = "unknown insertions: stored"
	unknownLost       kind = "unknown insertions: not stored"
	deadByCrashes     kind = "dead by crashes"
	runs              kind = "handler starts"
	tasks             kind = "tasks"
)

// required are the kinds that a whole run must have met.
func required() []kind {
	return []kind{
		refuse, lose, late, lateTimed, slow, swallow, hang, cutOff,
		crash, graceful, stop, stopLong, cutStore, cutIndex, flush, restore, rob, stepForward, stepBack,
		takeOver, refusedSettlement, unknownStored, unknownLost, overlapDeaf, overlapStopped,
	}
}

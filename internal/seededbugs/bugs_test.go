package seededbugs

// bug is a mistake in one place.
type bug struct {
	name string
	harm string // what its users would suffer
	file string // below the root of the module
	old  string // what is replaced; it stands there once
	new  string
	by   []check // what is to catch it
}

// check is a part of the project's tests.
type check struct {
	kind string
	pkg  string // below the root of the module
	run  string
	args []string // of the test binary
	env  []string
	bare bool // no server, few seconds, and little to compile
}

// The kinds of tests, at least two of which must catch each bug.
const (
	histories   = "model histories"
	simulations = "simulation"
	searches    = "search of all states"
	unknown     = "unknown outcomes"
	chaotic     = "chaos"
	scenario    = "scenarios"
	conforms    = "conformance cases"
)

// A failing history is printed as it is: to make it smaller would take longer than
// all the rest.
var unshrunk = []string{"-rapid.shrinktime=1ms"}

func (c check) shortened() check { c.args = unshrunk; return c }

var (
	simulated = check{kind: simulations, pkg: "internal/simulation", run: "^TestSimulation$"}
	// A scheduler's mistake may need a rare coincidence.
	simulatedLong = check{kind: simulations, pkg: "internal/simulation", run: "^TestSimulation$", env: []string{"DUECLAIM_SEEDS=200"}}
	searched      = check{kind: searches, pkg: "internal/model", run: "^TestEveryOrderOfStepsWithOneTask$", bare: true}
	onMemory      = check{kind: histories, pkg: "claim", run: "^TestMemoryAnswersRandomHistories$"}.shortened()
	onMariaDB     = check{kind: histories, pkg: "mysqlclaim", run: "^TestRandomHistories$/mariadb/^defaults$"}.shortened()
	onPgx         = check{kind: histories, pkg: "pgclaim", run: "^TestRandomHistories$/^pgx/^defaults$"}.shortened()
	onSQLite      = check{kind: histories, pkg: "sqliteclaim", run: "^TestRandomHistories$/^defaults$"}.shortened()
	onRedis       = check{kind: histories, pkg: "redisindex", run: "^TestRandomHistories$/^redis$"}.shortened()

	brokenLineToMariaDB = check{kind: unknown, pkg: "internal/unknowns", run: "^TestConcurrentCallsOverABreakingLineAreLinearizable$/^mariadb"}
	brokenLineToPgx     = check{kind: unknown, pkg: "internal/unknowns", run: "^TestConcurrentCallsOverABreakingLineAreLinearizable$/^pgx_pool"}
	lostCallsOfSQLite   = check{kind: unknown, pkg: "internal/unknowns", run: "^TestConcurrentCallsThatGetLostBeforeSQLiteAreLinearizable$"}
	cutCalls            = check{kind: unknown, pkg: "internal/unknowns", run: "^TestACallCutAnywhereHasItsEffectOnce$"}
	committedConflict   = check{kind: unknown, pkg: "internal/unknowns", run: "^TestR51AWriteConflictThatWasCommittedIsFoundByItsHolder$/^mariadb"}
	repeatedIndexSteps  = check{kind: unknown, pkg: "internal/unknowns", run: "^TestR54AStepOfTheIndexThatIsExecutedAgainLeavesWhatOneLeaves$"}

	racesOnMariaDB = check{kind: chaotic, pkg: "internal/chaos", run: "^TestSixteenClaimersOfTheSameIdsHaveOneWinnerEach$/^mariadb$"}
	racesOnPgx     = check{kind: chaotic, pkg: "internal/chaos", run: "^TestSixteenClaimersOfTheSameIdsHaveOneWinnerEach$/^pgx$"}
	// A race of two statements, which three hundred ids may not meet.
	longRacesOnPgx = check{kind: chaotic, pkg: "internal/chaos", run: racesOnPgx.run, env: []string{"DUECLAIM_STRESS=1"}}
	tokensOnPgx    = check{kind: conforms, pkg: "pgclaim", run: "^TestStoreKeepsTheContract$/^pgx_cache_statement$/^token$"}
	lossesOfRedis  = check{kind: conforms, pkg: "redisindex", run: "^TestConformance$/^losses$"}
	listsOfRedis   = check{kind: conforms, pkg: "redisindex", run: "^TestConformance$/^list$"}
	kills          = check{kind: chaotic, pkg: "internal/chaos", run: "^TestKilledWorkersLoseNothing$"}
	stops          = check{kind: chaotic, pkg: "internal/chaos", run: "^TestStoppedWorkersCompleteNothingThatWasTakenOver$"}
	spoiltRedis    = check{kind: chaotic, pkg: "internal/chaos", run: "^TestNothingThatHappensToRedisLosesATask$"}
	spoiltDatabase = check{kind: chaotic, pkg: "internal/chaos", run: "^TestNothingThatHappensToTheDatabaseUndoesWhatItAcknowledged$"}
)

// scene is one scenario, by the beginning of its test's name, and on one store where
// sub says so.
func scene(name, sub string) check {
	c := check{kind: scenario, pkg: "internal/scenarios", run: "^Test" + name + "[A-Z]"}
	if sub != "" {
		c.run += "/^" + sub + "$"
	}
	return c
}

// all are the bugs.
func all() []bug {
	var list []bug
	for _, some := range [][]bug{protocolBugs(), coreBugs(), mysqlBugs(), postgresBugs(), sqliteBugs(), redisBugs()} {
		list = append(list, some...)
	}
	return list
}

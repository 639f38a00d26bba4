package conformance_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/sqlmocked"
	"github.com/dueclaim/dueclaim/core"
)

var sqlDoubles = []double{
	{bug: "commit error = success", want: "faults/commit"},
	{bug: "commit forgotten", want: "claim/granted", also: "settle cost"},
	{bug: "reply lost = lost claim", want: "faults/lost-after-sending"},
	{bug: "0 rows = lost claim", want: "claim/repeat"},
	{bug: "0 rows = lost lease", want: "settle/repeat"},
	{bug: "0 rows = success", want: "settle/older"},
	{bug: "unknown outcome = refused", want: "faults/lost-after-sending"},
	{bug: "status not in the WHERE", want: "claim/granted"},
	{bug: "no token on completion", want: "settle/done", also: "cost"},
	{bug: "now for due by", want: "claim/granted"},
	{bug: "driver's error hidden", want: "faults/deadlock"},
	{bug: "tries again by itself", want: "faults/deadlock"},
	{bug: "transaction left open", want: "faults/deadlock"},
	{bug: "rows left open", want: "claim/granted", also: "settle"},
	{bug: "error behind the rows ignored", want: "faults/lost-while-reading"},
	{bug: "costs more than it says", want: "cost/settle"},
}

// tinyCases are those that a tiny has the methods for.
func tinyCases(name string) bool {
	group, _, _ := strings.Cut(name, "/")
	return group == "contract" || group == "faults" || tinyScripts[name] != nil
}

func tinyBackend(bug string) conformance.SQL {
	x := conformance.SQL{
		New:     func(_ *testing.T, db *sql.DB) core.Store { return &tiny{db: db, bug: bug} },
		Play:    sqlmocked.Play,
		Scripts: tinyScripts,
		Costs:   map[string]int{"cost/settle": 502},
		Errors: conformance.SQLErrors{
			Deadlock: errors.New("deadlock"), LockTimeout: errors.New("lock wait time-out"), Serialization: errors.New("serialization failure"),
			ReadOnly: errors.New("read-only"), LostBefore: driver.ErrBadConn, LostAfter: errors.New("connection lost"),
		},
		Provides: conformance.StoreProvides{KeepsFinished: true},
	}
	if bug == "costs more than it says" {
		x.Costs["cost/settle"] = 3
	}
	return x
}

const presentMs = int64(1893553445678)

func tinyTx(steps ...conformance.SQLStep) []conformance.SQLStep {
	return append(append([]conformance.SQLStep{{Do: conformance.SQLBegin}}, steps...), conformance.SQLStep{Do: conformance.SQLCommit})
}

func tinyClaims(id string, n int64) conformance.SQLStep {
	return conformance.SQLStep{
		Do: conformance.SQLExec, Text: tinyClaim, Affected: n,
		Args: row{"holder-1", presentMs + 30_000, id, presentMs + 50, presentMs - 2000, "holder-1"},
	}
}

func tinyReads(id string, rows ...row) conformance.SQLStep {
	return conformance.SQLStep{Do: conformance.SQLQuery, Text: tinyRead, Args: row{id}, Rows: rows}
}

func tinyFinishes(id string, token, n int64) conformance.SQLStep {
	return conformance.SQLStep{
		Do: conformance.SQLExec, Text: tinyDone, Affected: n, Args: row{presentMs + 100, id, token, "holder-1"},
	}
}

var (
	tinyA = row{"running", presentMs - 1000, presentMs - 1000, 42, "holder-1", presentMs + 30_000, 1, 0, []byte("payload of a")}
	tinyB = row{"running", presentMs - 500, presentMs - 500, 8, "holder-1", presentMs + 30_000, 1, 0, []byte("payload of b")}
	// Rows of b after a Settle that left it alone.
	tinyDoneB  = row{"done", 0, presentMs - 500, 8, "holder-1", 0, 1, 0, nil}
	tinyNewerB = row{"running", presentMs - 500, presentMs - 500, 9, "holder-0", presentMs + 9000, 1, 0, nil}
	tinyDoneA  = row{"done", 0, presentMs - 1000, 42, "holder-1", 0, 1, 0, nil}
)

var tinyScripts = map[string][]conformance.SQLStep{
	"claim/granted": slices.Concat(tinyTx(tinyClaims("b", 1), tinyClaims("a", 1)),
		[]conformance.SQLStep{tinyReads("b", tinyB), tinyReads("a", tinyA)}),
	"claim/repeat": slices.Concat(tinyTx(tinyClaims("b", 0), tinyClaims("a", 0)),
		[]conformance.SQLStep{tinyReads("b", tinyB), tinyReads("a", tinyA)}),
	"settle/done": tinyTx(tinyFinishes("b", 8, 1), tinyFinishes("a", 42, 1)),
	"settle/repeat": slices.Concat(tinyTx(tinyFinishes("b", 8, 0), tinyFinishes("a", 42, 0)),
		[]conformance.SQLStep{tinyReads("b", tinyDoneB), tinyReads("a", tinyDoneA)}),
	"settle/older": append(tinyTx(tinyFinishes("b", 8, 0), tinyFinishes("a", 42, 1)), tinyReads("b", tinyNewerB)),
	"settle/busy":  append(tinyTx(tinyFinishes("b", 8, 0), tinyFinishes("a", 42, 1)), tinyReads("b", tinyB)),
	"cost/settle":  tinyTx(tinyBatch()...),
}

func tinyBatch() (steps []conformance.SQLStep) {
	for i := range 500 {
		steps = append(steps, tinyFinishes(fmt.Sprintf("t%03d", i), 42, 1))
	}
	return steps
}

func TestARightTinySQLStorePasses(t *testing.T) {
	assert.Empty(t, conformance.SQLFailures(t, tinyBackend(""), tinyCases))
}

func TestEachBrokenSQLStoreFailsTheCaseMeantForIt(t *testing.T) {
	run, caught := 0, 0
	for _, d := range sqlDoubles {
		t.Run(d.bug, func(t *testing.T) {
			run++
			if d.check(t, conformance.SQLFailures(t, tinyBackend(d.bug), tinyCases)) {
				caught++
			}
		})
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("broken SQL stores: %d of %d", caught, run))
}

func TestAScenarioNeedsAScriptAndAScriptAScenario(t *testing.T) {
	x := tinyBackend("")
	failures := conformance.SQLFailures(t, x, func(name string) bool { return name == "settle/retry" })
	assert.Contains(t, failures["settle/retry"], "there is no script for the scenario settle/retry")
	x.Scripts = map[string][]conformance.SQLStep{"settle/retyr": nil}
	x.Costs = map[string]int{"settle/done": 1}
	assert.Len(t, conformance.StrayScripts(x), 2)
}

// clocked is a tiny with an optional capability.
type clocked struct{ *tiny }

func (clocked) Now(context.Context) (time.Time, error) { return time.UnixMilli(presentMs).UTC(), nil }

func TestWhatAnSQLStoreProvidesIsCheckedBothWays(t *testing.T) {
	contract := func(name string) bool { return name == "contract/provides" }
	x := tinyBackend("")
	x.Provides.TimeSource = true
	assert.Contains(t, conformance.SQLFailures(t, x, contract)["contract/provides"], "Provides.TimeSource against")
	x.New = func(_ *testing.T, db *sql.DB) core.Store { return clocked{&tiny{db: db}} }
	assert.Empty(t, conformance.SQLFailures(t, x, contract))
	x.Provides.TimeSource = false
	assert.Contains(t, conformance.SQLFailures(t, x, contract)["contract/provides"], "Provides.TimeSource against")
	x.Provides.Purger = true
	assert.Contains(t, conformance.SQLFailures(t, x, contract)["contract/provides"], "Provides.Purger against")
}

func TestAScriptOfWhatIsNotProvidedIsNotPassedOver(t *testing.T) {
	x := tinyBackend("")
	x.Scripts = map[string][]conformance.SQLStep{"clock/now": nil, "settle/repeat": nil, "transaction/insert": nil}
	x.Costs = map[string]int{"cost/purge": 1}
	var texts []string
	for _, err := range conformance.StrayScripts(x) {
		texts = append(texts, err.Error())
	}
	assert.Equal(t, []string{
		`the field Scripts has a script for "clock/now", which isn't run: not provided: TimeSource`,
		`the field Scripts has a script for "transaction/insert", which isn't run: not provided: InsertTx`,
		`the field Costs has a number for "cost/purge", which isn't run: not provided: Purger`,
	}, texts)
}

// A case with nothing to check must not pass.
func TestAFaultWithoutAnErrorIsNotProvided(t *testing.T) {
	const commit, again = "faults/commit", "faults/sent-again"
	x := tinyBackend("")
	assert.Empty(t, conformance.SQLWhyNot(x, commit))
	assert.Empty(t, conformance.SQLWhyNot(x, again))
	x.Errors.LostBefore = errors.New("connection lost")
	assert.Equal(t, "not provided: Errors.LostBefore=driver.ErrBadConn", conformance.SQLWhyNot(x, again))
	x.Errors = conformance.SQLErrors{LostBefore: driver.ErrBadConn}
	assert.Equal(t, "not provided: Errors.Deadlock/Serialization/LostAfter", conformance.SQLWhyNot(x, commit))
	x = tinyBackend("")
	x.Scripts = map[string][]conformance.SQLStep{"cost/settle": tinyScripts["cost/settle"]}
	assert.Equal(t, "not provided: OwnTransaction", conformance.SQLWhyNot(x, commit), "no faults are put into the scenarios of the group cost")
}

func TestEachSQLCaseHasANameOfItsOwnAndARule(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range conformance.SQLNames() {
		assert.False(t, seen[name], "two cases are named %q", name)
		seen[name] = true
		assert.Regexp(t, `^[a-z]+/[a-z0-9-]+$`, name)
	}
	for name, rule := range conformance.SQLRules() {
		assert.Regexp(t, `[.)]$`, rule, name)
		assert.NotContains(t, rule, "\n", name)
	}
	for _, sc := range conformance.SQLScenarios() {
		assert.NotEmpty(t, sc.State, sc.Name)
		assert.NotEmpty(t, sc.Call, sc.Name)
	}
}

package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// SQL says how to get at a core.Store on database/sql whose statements are to be
// checked against a script, with no server behind.
type SQL struct {
	// New returns a store on db, which it doesn't close. It may be called from
	// another goroutine than the test's, many times a case.
	New func(t *testing.T, db *sql.DB) core.Store
	// Play returns a database that expects exactly these steps, in this order:
	// sqlmocked.Play, or one of your own. It may be called like New.
	Play func(t *testing.T, steps []SQLStep) SQLPlay
	// Scripts maps the name of each scenario (SQLScenarios) to what a fresh store
	// is expected to ask in it, and what the database answers. A scenario without
	// a script fails, and so does a script without a scenario, or for one that isn't
	// run since the store doesn't provide what it is about.
	Scripts map[string][]SQLStep
	// Costs is how many steps a batch of 500 takes, for each scenario of the group
	// cost; it is checked exactly.
	Costs map[string]int
	// Errors are what the driver returns when something goes wrong.
	Errors SQLErrors
	// InsertTx and SettleTx call the store's own methods for the caller's
	// transaction. Nil: it has none, and those scenarios are not run.
	InsertTx func(ctx context.Context, s core.Store, tx *sql.Tx, call core.Call, tasks []core.Task) error
	SettleTx func(ctx context.Context, s core.Store, tx *sql.Tx, now time.Time, settlements []core.Settlement) error
	// Provides declares the store's optional capabilities, checked both ways.
	Provides StoreProvides
	// Skip maps the name of a case to the reason why this store can't keep its
	// rule. A name that no case has fails.
	Skip map[string]string
}

// SQLErrors are a driver's errors, for the cases that put one in each place of
// each script. A nil one leaves its case out; a failed commit needs one of
// Deadlock, Serialization and LostAfter.
type SQLErrors struct {
	// Deadlock: the server chose this statement as the victim.
	Deadlock error
	// LockTimeout: the server gave up waiting for a lock. A store may answer it
	// with core.ErrBusy for items instead of returning it.
	LockTimeout error
	// Serialization: the server couldn't order concurrent transactions.
	Serialization error
	// ReadOnly: the server takes no writes: a replica, or a fail-over is under way.
	ReadOnly error
	// LostBefore: the connection was found dead before anything was sent. It is
	// driver.ErrBadConn with most drivers, and database/sql then tries three
	// connections by itself outside of a transaction: the suite reckons with that.
	LostBefore error
	// LostAfter: the connection died after the statement was sent; it may have
	// taken effect. A driver must not return driver.ErrBadConn for that.
	LostAfter error
}

// TestSQL runs every scenario's script, and each fault in each place of each
// script, as subtests of t. It needs no server and no time.
//
// It proves which statements are sent, in which order, with which values, what
// the store makes of each answer, and that nothing is left open after an error.
// It can't prove that a server understands them; see the package comment.
func TestSQL(t *testing.T, store SQL) {
	t.Helper()
	testSQL(t, store, newSettings(store.provides(), store.Skip))
}

func (x SQL) provides() map[string]bool {
	return map[string]bool{
		"TimeSource": x.Provides.TimeSource, "Purger": x.Provides.Purger, "KeepsFinished": x.Provides.KeepsFinished,
		"InsertTx": x.InsertTx != nil, "SettleTx": x.SettleTx != nil,
		"Errors.Deadlock": x.Errors.Deadlock != nil, "Errors.LockTimeout": x.Errors.LockTimeout != nil,
		"Errors.Serialization": x.Errors.Serialization != nil, "Errors.ReadOnly": x.Errors.ReadOnly != nil,
		"Errors.LostBefore": x.Errors.LostBefore != nil, "Errors.LostAfter": x.Errors.LostAfter != nil,
		sqlOwnTransaction: x.commits(), sqlCommitError: x.commitErrors() != nil,
		sqlBadConn: errors.Is(x.Errors.LostBefore, driver.ErrBadConn),
	}
}

// What some faults need so as to have something to check. (Names of
// capabilities have no spaces.)
const (
	sqlOwnTransaction = "OwnTransaction"
	sqlCommitError    = "Errors.Deadlock/Serialization/LostAfter"
	sqlBadConn        = "Errors.LostBefore=driver.ErrBadConn"
)

// commitErrors are the errors with which a commit can fail.
func (x SQL) commitErrors() []error {
	var errs []error
	for _, err := range []error{x.Errors.Deadlock, x.Errors.Serialization, x.Errors.LostAfter} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// commits tells whether the store opens transactions by itself in the scenarios
// that faults are put into.
func (x SQL) commits() bool {
	for name, steps := range x.Scripts {
		if !isCallersTx(name) && !isCost(name) && slices.ContainsFunc(steps, func(step SQLStep) bool { return step.Do == SQLCommit }) {
			return true
		}
	}
	return false
}

func isCallersTx(name string) bool { return strings.HasPrefix(name, "transaction/") }

func testSQL(t *testing.T, store SQL, s settings) {
	t.Helper()
	require.NotNil(t, store.New, "conformance.SQL.New is nil")
	require.NotNil(t, store.Play, "conformance.SQL.Play is nil")
	cases := sqlCases()
	s.checkSkip(t, names(cases))
	for _, err := range store.strayScripts() {
		t.Error(err)
	}
	runCases(t, s, cases, func(t *testing.T, c *caseT) *sqlEnv {
		return &sqlEnv{caseT: c, t: t, sql: store, settings: s}
	})
}

// strayScripts names scripts and costs that belong to no scenario, or to one that
// isn't run: a misspelt or outdated one, or a capability that was forgotten in
// Provides, must not go unnoticed.
func (x SQL) strayScripts() []error {
	capabilities := newSettings(x.provides(), nil)
	whyNot := map[string]string{}
	for _, sc := range SQLScenarios() {
		whyNot[sc.Name] = capabilities.whyNot(sc.Name, sc.needs)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(x.Scripts)) {
		if why, known := whyNot[name]; !known {
			errs = append(errs, fmt.Errorf("the field Scripts has a script for an unknown scenario %q; the scenarios are %v",
				name, slices.Sorted(maps.Keys(whyNot))))
		} else if why != "" {
			errs = append(errs, fmt.Errorf("the field Scripts has a script for %q, which isn't run: %s", name, why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Costs)) {
		if why, known := whyNot[name]; !known || !isCost(name) {
			errs = append(errs, fmt.Errorf("the field Costs has a number for %q, which is no scenario of the group cost", name))
		} else if why != "" {
			errs = append(errs, fmt.Errorf("the field Costs has a number for %q, which isn't run: %s", name, why))
		}
	}
	return errs
}

func sqlCases() []testCase[*sqlEnv] {
	var all []testCase[*sqlEnv]
	for _, sc := range SQLScenarios() {
		all = append(all, testCase[*sqlEnv]{name: sc.Name, rule: sc.Rule, needs: sc.needs, run: func(e *sqlEnv) { e.playWell(sc) }})
	}
	return slices.Concat(sqlContract, all, sqlIdle, sqlFaults)
}

package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sqlEnv is what a case of TestSQL works with.
type sqlEnv struct {
	*caseT
	t        *testing.T
	sql      SQL
	settings settings
}

// sqlRun is a store of its own on a database that plays steps.
type sqlRun struct {
	SQLPlay
	store core.Store
}

func (e *sqlEnv) play(steps []SQLStep) sqlRun {
	p := e.sql.Play(e.t, steps)
	return sqlRun{p, e.sql.New(e.t, p.DB())}
}

// script returns a scenario's script and ends the case where there is none.
func (e *sqlEnv) script(sc SQLScenario) []SQLStep {
	steps, ok := e.sql.Scripts[sc.Name]
	if !ok {
		e.Errorf("there is no script for the scenario %s; write one in the field Scripts.\n\tthe call: %s\n\tthe database: %s", sc.Name, sc.Call, sc.State)
		e.FailNow()
	}
	return steps
}

// playWell plays the script as it stands.
func (e *sqlEnv) playWell(sc SQLScenario) {
	steps := e.script(sc)
	run := e.play(steps)
	got := sc.call(e, run.store, run.DB())
	// The statements first: where they differ, the answer only shows what follows.
	e.wantPlayed(run, "")
	e.wantAnswer(sc, got, "")
	if isCost(sc.Name) {
		e.wantCost(sc, steps)
	}
}

// playsWell tells whether the script as it stands is followed.
func (e *sqlEnv) playsWell(sc SQLScenario, steps []SQLStep) bool {
	probe := &sqlEnv{caseT: &caseT{ctx: e.ctx, patience: e.patience}, t: e.t, sql: e.sql, settings: e.settings}
	ended := make(chan struct{})
	go func() { // of its own, which FailNow ends
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				probe.Errorf("panic: %v", p)
			}
		}()
		run := probe.play(steps)
		probe.wantAnswer(sc, sc.call(probe, run.store, run.DB()), "")
		probe.wantPlayed(run, "")
	}()
	<-ended
	return len(probe.failures) == 0
}

// wantPlayed fails unless exactly the script was asked and nothing is open.
func (e *sqlEnv) wantPlayed(run sqlRun, about string) {
	if err := run.Err(); err != nil {
		e.Errorf("%swhat was asked isn't what the script says: %v", about, err)
	}
	e.wantClosed(run, about)
}

func (e *sqlEnv) wantClosed(run sqlRun, about string) {
	if n := run.DB().Stats().InUse; n != 0 {
		e.Errorf("%sgot %d connections still in use after the return (rows or a transaction left open), want 0", about, n)
	}
}

const costGroup = "cost/"

func isCost(name string) bool { return strings.HasPrefix(name, costGroup) }

// wantCost compares what a batch takes with what the author says.
func (e *sqlEnv) wantCost(sc SQLScenario, steps []SQLStep) {
	got := 0
	for _, step := range steps {
		if !step.Once {
			got++
		}
	}
	if want, ok := e.sql.Costs[sc.Name]; !ok || got != want {
		e.Errorf("%s: a batch of %d takes %d steps; the field Costs says %d", sc.Name, sqlBatch, got, want)
	}
	e.t.Logf("%s: %d steps for %d items", sc.Name, got, sqlBatch)
	e.t.Attr("dueclaim.statements", fmt.Sprint(got))
}

var sqlContract = []testCase[*sqlEnv]{
	{
		name: "contract/provides",
		rule: "A store has the optional capabilities TimeSource and Purger where they are declared, and only there.",
		run: func(e *sqlEnv) {
			run := e.play(nil)
			_, clock := run.store.(core.TimeSource)
			_, purger := run.store.(core.Purger)
			assert.Equal(e, e.sql.Provides.TimeSource, clock, "Provides.TimeSource against what the store has")
			assert.Equal(e, e.sql.Provides.Purger, purger, "Provides.Purger against what the store has")
			e.wantPlayed(run, "")
		},
	},
}

// sqlIdle are the cases in which nothing may be asked at all.
var sqlIdle = []testCase[*sqlEnv]{
	{
		name: "nothing/empty-batch",
		rule: "An empty slice is a no-op that returns nil: nothing is sent.",
		run: func(e *sqlEnv) {
			run := e.play(nil)
			for _, call := range sqlCallsOn(nil) {
				require.NoError(e, call.do(e.ctx, run.store), call.name)
			}
			e.wantPlayed(run, "")
		},
	},
	{
		name: "nothing/done-ctx",
		rule: "With a ctx that is already done no method does anything: nothing is sent, and the error is ctx's.",
		run: func(e *sqlEnv) {
			run := e.play(nil)
			for _, call := range sqlCallsOn([]core.ID{"b", "a"}) {
				require.ErrorIs(e, call.do(done(), run.store), context.Canceled, call.name)
			}
			_, err := run.store.Waiting(done(), base, core.Entry{}, at(1), 10)
			require.ErrorIs(e, err, context.Canceled, "Waiting")
			e.wantPlayed(run, "")
		},
	},
}

type sqlCallOn struct {
	name string
	do   func(ctx context.Context, s core.Store) error
}

// sqlCallsOn are the batch methods, each on ids.
func sqlCallsOn(ids []core.ID) []sqlCallOn {
	var settlements []core.Settlement
	var grants []core.Grant
	var moves []core.Move
	for _, id := range ids {
		grants = append(grants, sqlGrant(id, 8))
		settlements = append(settlements, core.Settlement{Grant: sqlGrant(id, 8), Outcome: core.Done})
		moves = append(moves, core.Move{ID: id, To: at(1)})
	}
	return []sqlCallOn{
		{"Insert", func(ctx context.Context, s core.Store) error { return s.Insert(ctx, sqlCall, tasks(ids, base)) }},
		{"Claim", func(ctx context.Context, s core.Store) error {
			_, err := s.Claim(ctx, ids, sqlLease)
			return err
		}},
		{"Extend", func(ctx context.Context, s core.Store) error { return s.Extend(ctx, grants, at(1)) }},
		{"Settle", func(ctx context.Context, s core.Store) error { return s.Settle(ctx, base, settlements) }},
		{"Cancel", func(ctx context.Context, s core.Store) error {
			_, err := s.Cancel(ctx, core.Call{Now: base}, ids)
			return err
		}},
		{"Reschedule", func(ctx context.Context, s core.Store) error { return s.Reschedule(ctx, core.Call{Now: base}, moves) }},
	}
}

// insertTx and settleTx call the store in a transaction of the caller's.
func (e *sqlEnv) insertTx(s core.Store, db *sql.DB, list []core.Task) sqlAnswer {
	return e.inTx(db, func(ctx context.Context, tx *sql.Tx) error { return e.sql.InsertTx(ctx, s, tx, sqlCall, list) })
}

func (e *sqlEnv) settleTx(s core.Store, db *sql.DB, list []core.Settlement) sqlAnswer {
	return e.inTx(db, func(ctx context.Context, tx *sql.Tx) error { return e.sql.SettleTx(ctx, s, tx, at(100), list) })
}

// onlyBusy tells whether err says core.ErrBusy of its items and nothing else.
func onlyBusy(err error) bool {
	var batch *core.BatchError
	return errors.As(err, &batch) && !slices.ContainsFunc(batch.Items, func(i core.ItemError) bool { return !errors.Is(i.Err, core.ErrBusy) })
}

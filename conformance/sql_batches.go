package conformance

import (
	"database/sql"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

var sqlTransactions = []SQLScenario{
	{
		Name:  "transaction/insert",
		Rule:  "InsertTx runs inside the caller's transaction, which the caller alone begins and ends.",
		State: "as in insert/new",
		Call:  "begin; InsertTx as Insert in insert/new; commit",
		needs: "InsertTx",
		call:  func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer { return e.insertTx(s, db, sqlBoth()) },
	},
	{
		Name:  "transaction/insert-exists",
		Rule:  "An expected refusal leaves the caller's transaction as it can be committed.",
		State: "as in insert/exists",
		Call:  "begin; InsertTx as Insert in insert/new; commit",
		needs: "InsertTx",
		call:  func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer { return e.insertTx(s, db, sqlBoth()) },
		want:  sqlAnswer{refused: []refusal{{1, "a", core.ErrExists}}},
	},
	{
		Name:  "transaction/settle",
		Rule:  "SettleTx runs inside the caller's transaction, which the caller alone begins and ends.",
		State: "as in settle/done",
		Call:  "begin; SettleTx as Settle in settle/done; commit",
		needs: "SettleTx",
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer {
			return e.settleTx(s, db, []core.Settlement{sqlDone("b", 8), sqlDone("a", 42)})
		},
	},
	{
		Name:  "transaction/settle-lost",
		Rule:  "SettleTx of an older grant fails with ErrLeaseLost and leaves the caller's transaction as it can be ended either way.",
		State: "as in settle/older",
		Call:  "begin; SettleTx as Settle in settle/done; commit",
		needs: "SettleTx",
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer {
			return e.settleTx(s, db, []core.Settlement{sqlDone("b", 8), sqlDone("a", 42)})
		},
		want: sqlAnswer{refused: []refusal{{0, "b", core.ErrLeaseLost}}},
	},
}

// sqlBatch is how many items the scenarios of the group cost have.
const sqlBatch = 500

// sqlIDs are "t000" to "t499".
func sqlIDs() []core.ID {
	ids := make([]core.ID, sqlBatch)
	for i := range ids {
		ids[i] = core.ID(fmt.Sprintf("t%03d", i))
	}
	return ids
}

func sqlGrants() []core.Grant {
	grants := make([]core.Grant, sqlBatch)
	for i, id := range sqlIDs() {
		grants[i] = sqlGrant(id, 42)
	}
	return grants
}

const sqlCostRule = "A batch costs as few round trips as the adapter says, whatever its length."

const sqlBatchGrants = "t000 … t499 are running under holder-1 with token 42 until T+30000"

var sqlCosts = []SQLScenario{
	{
		Name: "cost/insert", Rule: sqlCostRule,
		State: "no rows", Call: `Insert(` + sqlCallWords + `, [t000 … t499 due T+1000]), ` + sqlTaskWords,
		call: func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
			return sqlAnswer{err: s.Insert(e.ctx, sqlCall, tasks(sqlIDs(), at(1000)))}
		},
	},
	{
		Name: "cost/claim", Rule: sqlCostRule,
		State: "t000 … t499 are pending, due and planned T-1000, token 41, no attempts", Call: `Claim([t000 … t499], ` + sqlLeaseWords + `)`,
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer { return sqlClaim(sqlIDs()...)(e, s, db) },
		want: sqlAnswer{claimed: sqlGrantedAll()},
	},
	{
		Name: "cost/extend", Rule: sqlCostRule,
		State: sqlBatchGrants, Call: `Extend([t000 … t499], T+60000)`,
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer { return sqlExtend(sqlGrants()...)(e, s, db) },
	},
	{
		Name: "cost/settle", Rule: sqlCostRule,
		State: sqlBatchGrants, Call: `Settle(T+100, [t000 … t499 Done])`,
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer {
			list := make([]core.Settlement, sqlBatch)
			for i, g := range sqlGrants() {
				list[i] = core.Settlement{Grant: g, Outcome: core.Done}
			}
			return sqlSettle(list...)(e, s, db)
		},
	},
	{
		Name: "cost/cancel", Rule: sqlCostRule,
		State: "t000 … t499 are pending", Call: `Cancel(T+100, [t000 … t499])`,
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer { return sqlCancel(sqlIDs()...)(e, s, db) },
		want: sqlAnswer{fates: sqlCancelledAll()},
	},
	{
		Name: "cost/reschedule", Rule: sqlCostRule,
		State: "t000 … t499 are pending, due T+1000", Call: `Reschedule(T+100, [t000 … t499 From T+1000 To T+5000])`,
		call: func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer {
			moves := make([]core.Move, sqlBatch)
			for i, id := range sqlIDs() {
				moves[i] = core.Move{ID: id, From: at(1000), To: at(5000)}
			}
			return sqlReschedule(moves...)(e, s, db)
		},
	},
	{
		Name: "cost/waiting", Rule: sqlCostRule,
		State: "t000 … t499 wait, due T-1000", Call: `Waiting(T, Entry{}, T+10000, 500)`,
		call: sqlWaiting(core.Entry{}, at(10_000), sqlBatch),
		want: sqlAnswer{entries: sqlWaitingAll()},
	},
	{
		Name: "cost/purge", Rule: sqlCostRule, needs: "Purger",
		State: "t000 … t499 were finished before T", Call: `Purge(T, 500)`,
		call: sqlPurge(sqlBatch),
		want: sqlAnswer{count: sqlBatch},
	},
}

func sqlGrantedAll() (all []core.Claimed) {
	for _, id := range sqlIDs() {
		all = append(all, sqlGranted(id, 42, at(-1000), 1, 0))
	}
	return all
}

func sqlCancelledAll() (all []core.Fate) {
	for range sqlBatch {
		all = append(all, core.Cancelled)
	}
	return all
}

func sqlWaitingAll() (all []core.Entry) {
	for _, id := range sqlIDs() {
		all = append(all, core.Entry{ID: id, Due: at(-1000)})
	}
	return all
}

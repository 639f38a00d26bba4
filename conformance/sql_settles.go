package conformance

import (
	"database/sql"

	"github.com/dueclaim/dueclaim/core"
)

const sqlBothGrants = "a and b are running under holder-1, a with token 42, b with token 8, until T+30000"

var sqlExtends = []SQLScenario{
	{
		Name:  "extend/all",
		Rule:  "Extend moves the end of each lease, guarded by token and holder.",
		State: sqlBothGrants,
		Call:  `Extend([b, a], T+60000), each Grant{Token: b 8, a 42, Holder: "holder-1"}`,
		again: "extend/repeat",
		call:  sqlExtend(sqlGrant("b", 8), sqlGrant("a", 42)),
	},
	{
		Name:  "extend/repeat",
		Rule:  "A lease that reaches until already is no loss, though no row was changed.",
		State: "a and b are running under these grants until T+60000",
		Call:  "as in extend/all",
		call:  sqlExtend(sqlGrant("b", 8), sqlGrant("a", 42)),
	},
	{
		Name:  "extend/lost",
		Rule:  "Extend of a grant that is no longer the newest fails with ErrLeaseLost for that item alone.",
		State: "a as in extend/all; b is running under holder-0 with token 9; there is no row of c",
		Call:  `Extend([c, b, a], T+60000), each Grant{Token: c 5, b 8, a 42, Holder: "holder-1"}`,
		call:  sqlExtend(sqlGrant("c", 5), sqlGrant("b", 8), sqlGrant("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "c", core.ErrLeaseLost}, {1, "b", core.ErrLeaseLost}}},
	},
	{
		Name:  "extend/busy",
		Rule:  "A locked row never holds up the others: it may fail with ErrBusy, and is never taken for extended or lost.",
		State: sqlBothGrants + "; b stays as it is (another transaction has it locked)",
		Call:  "as in extend/all",
		call:  sqlExtend(sqlGrant("b", 8), sqlGrant("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrBusy}}},
	},
}

func sqlExtend(grants ...core.Grant) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		return sqlAnswer{err: s.Extend(e.ctx, grants, at(60_000))}
	}
}

// sqlDone finishes a task under a grant of sqlBothGrants.
func sqlDone(id core.ID, token int64) core.Settlement {
	return core.Settlement{Grant: sqlGrant(id, token), Outcome: core.Done}
}

const sqlSettleWords = `Settle(T+100, [b Done, a Done]), each Grant{Token: b 8, a 42, Holder: "holder-1"}`

var sqlSettles = []SQLScenario{
	{
		Name:  "settle/done",
		Rule:  "Settle finishes each task by a conditional statement, guarded by the running state, token and holder.",
		State: sqlBothGrants,
		Call:  sqlSettleWords,
		again: "settle/repeat",
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
	},
	{
		Name:  "settle/retry",
		Rule:  "Retry makes the task pending at Settlement.Due, which becomes its Task.Due, and keeps the text of the failure.",
		State: sqlBothGrants,
		Call:  `Settle(T+100, [a Retry, Due T+5000, Err "it failed"])`,
		call:  sqlSettle(core.Settlement{Grant: sqlGrant("a", 42), Outcome: core.Retry, Due: at(5000), Err: "it failed"}),
	},
	{
		Name:  "settle/dead",
		Rule:  "DeadLetter keeps the task as dead, with the text of the failure.",
		State: sqlBothGrants,
		Call:  `Settle(T+100, [a DeadLetter, Err "given up"])`,
		call:  sqlSettle(core.Settlement{Grant: sqlGrant("a", 42), Outcome: core.DeadLetter, Err: "given up"}),
	},
	{
		Name:  "settle/released",
		Rule:  "Released gives the task back at Settlement.Due: the attempt is not counted and Task.Due stays.",
		State: sqlBothGrants,
		Call:  `Settle(T+100, [a Released, Due T+5000])`,
		call:  sqlSettle(core.Settlement{Grant: sqlGrant("a", 42), Outcome: core.Released, Due: at(5000)}),
	},
	{
		Name:  "settle/mixed",
		Rule:  "Settlements of all outcomes may come in one call, in any order.",
		State: "a, b, c and d are running under holder-1 with the tokens 42, 8, 5 and 3",
		Call:  `Settle(T+100, [d Released, Due T+5000; c DeadLetter, Err "given up"; b Retry, Due T+6000, Err "it failed"; a Done])`,
		call: sqlSettle(
			core.Settlement{Grant: sqlGrant("d", 3), Outcome: core.Released, Due: at(5000)},
			core.Settlement{Grant: sqlGrant("c", 5), Outcome: core.DeadLetter, Err: "given up"},
			core.Settlement{Grant: sqlGrant("b", 8), Outcome: core.Retry, Due: at(6000), Err: "it failed"},
			sqlDone("a", 42)),
	},
	{
		Name:  "settle/repeat",
		Rule:  "A repeated Settle of a task that this holder settled, and nobody was granted since, is a success that changes nothing.",
		State: "a and b were finished under these grants, their rows are kept",
		Call:  sqlSettleWords,
		needs: "KeepsFinished",
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
	},
	{
		Name:  "settle/gone",
		Rule:  "Settle of a task that is no longer there fails with ErrLeaseLost: no changed row is no success.",
		State: "there is no row of a or b",
		Call:  sqlSettleWords,
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrLeaseLost}, {1, "a", core.ErrLeaseLost}}},
	},
	{
		Name:  "settle/older",
		Rule:  "Settle by an older holder fails with ErrLeaseLost, always; the others of its batch count.",
		State: "a as in settle/done; b is running under holder-0 with token 9",
		Call:  sqlSettleWords,
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrLeaseLost}}},
	},
	{
		Name:  "settle/cancelled",
		Rule:  "Settle of a task that was cancelled fails with ErrLeaseLost, though token and holder are its own.",
		State: "a as in settle/done; b was cancelled while it was running under this grant",
		Call:  sqlSettleWords,
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrLeaseLost}}},
	},
	{
		Name:  "settle/busy",
		Rule:  "A row that still runs under the grant was locked by somebody: ErrBusy, and never a success or a loss.",
		State: sqlBothGrants + "; b stays as it is (another transaction has it locked)",
		Call:  sqlSettleWords,
		call:  sqlSettle(sqlDone("b", 8), sqlDone("a", 42)),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrBusy}}},
	},
}

func sqlSettle(list ...core.Settlement) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		return sqlAnswer{err: s.Settle(e.ctx, at(100), list)}
	}
}

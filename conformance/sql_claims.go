package conformance

import (
	"database/sql"

	"github.com/dueclaim/dueclaim/core"
)

var sqlInserts = []SQLScenario{
	{
		Name:  "insert/new",
		Rule:  "Insert stores each task as pending, all in as few statements as there are batches.",
		State: "no row of a or b",
		Call:  `Insert(` + sqlCallWords + `, [b due T+2000, a due T+1000]), ` + sqlTaskWords,
		again: "insert/repeat",
		call:  sqlInsertBoth,
	},
	{
		Name:  "insert/repeat",
		Rule:  "A repeat of Insert with the same Call.ID recognises its own earlier success, whatever became of the task since, and changes nothing.",
		State: "a was made by call-1 and is running; b was made by call-1 and is dead",
		Call:  "as in insert/new",
		call:  sqlInsertBoth,
	},
	{
		Name:  "insert/exists",
		Rule:  "Insert of an id whose task is live fails with ErrExists for that item alone; the others are stored.",
		State: "no row of b; a was made by call-0 and is pending",
		Call:  "as in insert/new",
		call:  sqlInsertBoth,
		want:  sqlAnswer{refused: []refusal{{1, "a", core.ErrExists}}},
	},
	{
		Name:  "insert/reuse",
		Rule:  "Insert of an id whose task is done, dead or cancelled replaces it, its token going on from there.",
		State: "no row of b; a was made by call-0 and is dead",
		Call:  "as in insert/new",
		call:  sqlInsertBoth,
	},
	{
		Name:  "insert/busy",
		Rule:  "A finished row that stays as it is, because another transaction has it locked, fails with ErrBusy, and is never taken for stored.",
		State: "no row of b; a was made by call-0, is dead and stays so",
		Call:  "as in insert/new",
		call:  sqlInsertBoth,
		want:  sqlAnswer{refused: []refusal{{1, "a", core.ErrBusy}}},
	},
}

func sqlBoth() []core.Task { return []core.Task{task("b", at(2000)), task("a", at(1000))} }

func sqlInsertBoth(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
	return sqlAnswer{err: s.Insert(e.ctx, sqlCall, sqlBoth())}
}

var sqlClaims = []SQLScenario{
	{
		Name:  "claim/granted",
		Rule:  "A pending task that is due is granted by one conditional statement, with a token higher by one and the attempt counted.",
		State: "a is pending, due and planned T-1000, token 41, no attempts; b is pending, due and planned T-500, token 7, no attempts",
		Call:  `Claim([b, a], ` + sqlLeaseWords + `)`,
		again: "claim/repeat",
		call:  sqlClaim("b", "a"),
		want:  sqlGrantedBoth,
	},
	{
		Name:  "claim/repeat",
		Rule:  "A repeat of Claim with the same holder finds what the first call was granted, as it was stored: a lost reply is no lost claim.",
		State: "a and b are running under holder-1 as claim/granted left them",
		Call:  "as in claim/granted",
		call:  sqlClaim("b", "a"),
		want:  sqlGrantedBoth,
	},
	{
		Name:  "claim/take-over",
		Rule:  "A task whose lease ended before lease.Now is granted again: token and attempt rise by one, and so does the count of crashes.",
		State: "a was running under holder-0 with token 41, lease end T-3000, 1 attempt, no crash, due and planned T-1000",
		Call:  `Claim([a], ` + sqlLeaseWords + `)`,
		call:  sqlClaim("a"),
		want:  sqlAnswer{claimed: []core.Claimed{sqlGranted("a", 42, at(-1000), 2, 1)}},
	},
	{
		Name: "claim/verdicts",
		Rule: "Claim returns one verdict for each id, in the order of ids, and a row that wasn't changed is judged by what it is.",
		State: "a is pending as in claim/granted; b is running under holder-0 until T+9000; c is pending, due T+5000; d is dead; " +
			"there is no row of e; f is pending, due T-1000, but stays so (another transaction has it locked)",
		Call: `Claim([f, e, d, c, b, a], ` + sqlLeaseWords + `)`,
		call: sqlClaim("f", "e", "d", "c", "b", "a"),
		want: sqlAnswer{claimed: []core.Claimed{
			{ID: "f", Verdict: core.Refused}, {ID: "e", Verdict: core.Gone}, {ID: "d", Verdict: core.Gone},
			{ID: "c", Verdict: core.NotDue, At: at(5000)}, {ID: "b", Verdict: core.Held, At: at(9000)},
			sqlGranted("a", 42, at(-1000), 1, 0),
		}},
	},
	{
		Name:  "claim/none",
		Rule:  "A claim that changed no row is granted nothing.",
		State: "a is running under holder-0 until T+9000",
		Call:  `Claim([a], ` + sqlLeaseWords + `)`,
		call:  sqlClaim("a"),
		want:  sqlAnswer{claimed: []core.Claimed{{ID: "a", Verdict: core.Held, At: at(9000)}}},
	},
}

var sqlGrantedBoth = sqlAnswer{claimed: []core.Claimed{sqlGranted("b", 8, at(-500), 1, 0), sqlGranted("a", 42, at(-1000), 1, 0)}}

func sqlClaim(ids ...core.ID) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		claimed, err := s.Claim(e.ctx, ids, sqlLease)
		return sqlAnswer{claimed: claimed, err: err}
	}
}

package conformance

import (
	"database/sql"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var sqlFates = sqlAnswer{fates: []core.Fate{core.Unknown, core.Finished, core.Cancelled, core.WasRunning, core.Cancelled}}

var sqlCancels = []SQLScenario{
	{
		Name: "cancel/fates",
		Rule: "Cancel cancels each task that is pending or running, and says for each id, in order, what it was.",
		State: "a is pending; b is running until T+9000; c was running with a lease that ended at T-3000; d is dead; " +
			"there is no row of e",
		Call:  `Cancel(T+100, [e, d, c, b, a])`,
		again: "cancel/repeat",
		call:  sqlCancel("e", "d", "c", "b", "a"),
		want:  sqlFates,
	},
	{
		Name:  "cancel/repeat",
		Rule:  "A repeated Cancel gives the same fates as long as the rows are there.",
		State: "as cancel/fates left it: a, b and c are cancelled, b under a lease until T+9000",
		Call:  "as in cancel/fates",
		needs: "KeepsFinished",
		call:  sqlCancel("e", "d", "c", "b", "a"),
		want:  sqlFates,
	},
	{
		Name:  "cancel/busy",
		Rule:  "A locked row fails with ErrBusy and has no fate; it is never taken for cancelled.",
		State: "a and b are pending; b stays so (another transaction has it locked)",
		Call:  `Cancel(T+100, [b, a])`,
		call:  sqlCancel("b", "a"),
		want:  sqlAnswer{fates: []core.Fate{0, core.Cancelled}, refused: []refusal{{0, "b", core.ErrBusy}}},
	},
}

func sqlCancel(ids ...core.ID) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		fates, err := s.Cancel(e.ctx, core.Call{Now: at(100)}, ids)
		return sqlAnswer{fates: fates, err: err}
	}
}

var sqlReschedules = []SQLScenario{
	{
		Name:  "reschedule/all",
		Rule:  "Reschedule sets the due time of pending tasks where it still is From; a zero From stands for any.",
		State: "a is pending, due T+1000; b is pending, due T+2000",
		Call:  `Reschedule(T+100, [b From zero To T+6000, a From T+1000 To T+5000])`,
		again: "reschedule/repeat",
		call:  sqlReschedule(core.Move{ID: "b", To: at(6000)}, core.Move{ID: "a", From: at(1000), To: at(5000)}),
	},
	{
		Name:  "reschedule/repeat",
		Rule:  "A task that already is due at To is a success, also where it isn't due at From.",
		State: "a is pending, due T+5000; b is pending, due T+6000",
		Call:  "as in reschedule/all",
		call:  sqlReschedule(core.Move{ID: "b", To: at(6000)}, core.Move{ID: "a", From: at(1000), To: at(5000)}),
	},
	{
		Name:  "reschedule/refused",
		Rule:  "A task that isn't pending fails with ErrNotPending, one whose due time isn't From with ErrMoved, for that item alone.",
		State: "a is pending, due T+1000; b is pending, due T+2000; c is running, due T+1000; there is no row of d",
		Call:  `Reschedule(T+100, [d, c, b, a each From T+1000 To T+5000])`,
		call: sqlReschedule(core.Move{ID: "d", From: at(1000), To: at(5000)}, core.Move{ID: "c", From: at(1000), To: at(5000)},
			core.Move{ID: "b", From: at(1000), To: at(5000)}, core.Move{ID: "a", From: at(1000), To: at(5000)}),
		want: sqlAnswer{refused: []refusal{{0, "d", core.ErrNotPending}, {1, "c", core.ErrNotPending}, {2, "b", core.ErrMoved}}},
	},
	{
		Name:  "reschedule/busy",
		Rule:  "A locked row fails with ErrBusy and is never taken for rescheduled.",
		State: "as in reschedule/all, but b stays as it is (another transaction has it locked)",
		Call:  "as in reschedule/all",
		call:  sqlReschedule(core.Move{ID: "b", To: at(6000)}, core.Move{ID: "a", From: at(1000), To: at(5000)}),
		want:  sqlAnswer{refused: []refusal{{0, "b", core.ErrBusy}}},
	},
}

func sqlReschedule(moves ...core.Move) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		return sqlAnswer{err: s.Reschedule(e.ctx, core.Call{Now: at(100)}, moves)}
	}
}

var sqlSweeps = []SQLScenario{
	{
		Name:  "waiting/first-page",
		Rule:  "Waiting returns the rows that are due before the bound and that nobody holds, by due time and id.",
		State: "a waits, due T-1000, and b, due T-500",
		Call:  `Waiting(T, Entry{}, T+10000, 3)`,
		call:  sqlWaiting(core.Entry{}, at(10_000), 3),
		want:  sqlAnswer{entries: []core.Entry{{ID: "a", Due: at(-1000)}, {ID: "b", Due: at(-500)}}},
	},
	{
		Name:  "waiting/next-page",
		Rule:  "Waiting goes on strictly after the given entry, by due time and then by id.",
		State: "c waits, due T-500 like b",
		Call:  `Waiting(T, Entry{"b", T-500}, T+10000, 3)`,
		call:  sqlWaiting(core.Entry{ID: "b", Due: at(-500)}, at(10_000), 3),
		want:  sqlAnswer{entries: []core.Entry{{ID: "c", Due: at(-500)}}},
	},
	{
		Name:  "waiting/none",
		Rule:  "Waiting returns nothing, and no error, where nothing waits.",
		State: "nothing waits",
		Call:  "as in waiting/first-page",
		call:  sqlWaiting(core.Entry{}, at(10_000), 3),
	},
	{
		Name:  "clock/now",
		Rule:  "Now returns the backend's time, in UTC and at least to the millisecond.",
		State: "the server's clock shows T",
		Call:  `Now()`,
		needs: "TimeSource",
		call: func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
			now, err := s.(core.TimeSource).Now(e.ctx)
			return sqlAnswer{now: now, err: err}
		},
		want: sqlAnswer{now: base},
	},
	{
		Name:  "purge/some",
		Rule:  "Purge deletes done and cancelled rows that were finished before the bound, and returns how many.",
		State: "a and b were finished before T",
		Call:  `Purge(T, 10)`,
		needs: "Purger",
		call:  sqlPurge(10),
		want:  sqlAnswer{count: 2},
	},
	{
		Name:  "purge/none",
		Rule:  "Purge of nothing is 0 and no error.",
		State: "no row was finished before T",
		Call:  `Purge(T, 10)`,
		needs: "Purger",
		call:  sqlPurge(10),
	},
}

func sqlWaiting(after core.Entry, before time.Time, limit int) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		entries, err := s.Waiting(e.ctx, base, after, before, limit)
		return sqlAnswer{entries: entries, err: err}
	}
}

func sqlPurge(limit int) func(*sqlEnv, core.Store, *sql.DB) sqlAnswer {
	return func(e *sqlEnv, s core.Store, _ *sql.DB) sqlAnswer {
		n, err := s.(core.Purger).Purge(e.ctx, base, limit)
		return sqlAnswer{count: n, err: err}
	}
}

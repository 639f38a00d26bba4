package conformance

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/dueclaim/dueclaim/core"
)

// sqlFault is one way in which a step can go wrong.
type sqlFault struct {
	name string
	err  error
	// at tells whether the fault can befall a step.
	at func(step SQLStep) bool
	// late: the error comes behind the rows.
	late bool
}

func anyStep(SQLStep) bool { return true }

// readsRows: a query whose rows are on their way when the connection dies.
func readsRows(step SQLStep) bool { return step.Do == SQLQuery && step.Err == nil && !step.OneRow }

const (
	sqlNoSuccess = "the call returns an error that is no success and no *BatchError, through which errors.Is finds the driver's; nothing more is sent but a rollback, nothing stays open, and a repeat succeeds."
	sqlLostReply = "A lost reply is an unknown outcome, whether or not the statement took effect: " + sqlNoSuccess
)

var sqlFaults = []testCase[*sqlEnv]{
	{
		name: "faults/deadlock", needs: "Errors.Deadlock",
		rule: "After a lost deadlock " + sqlNoSuccess,
		run:  func(e *sqlEnv) { e.befall(sqlFault{"a deadlock", e.sql.Errors.Deadlock, anyStep, false}) },
	},
	{
		name: "faults/lock-timeout", needs: "Errors.LockTimeout",
		rule: "After a lock time-out " + sqlNoSuccess + " (Or it fails with ErrBusy for items alone.)",
		run:  func(e *sqlEnv) { e.befall(sqlFault{"a lock time-out", e.sql.Errors.LockTimeout, anyStep, false}) },
	},
	{
		name: "faults/serialization", needs: "Errors.Serialization",
		rule: "After a serialization failure " + sqlNoSuccess,
		run: func(e *sqlEnv) {
			e.befall(sqlFault{"a serialization failure", e.sql.Errors.Serialization, anyStep, false})
		},
	},
	{
		name: "faults/read-only", needs: "Errors.ReadOnly",
		rule: "On a server that is read-only " + sqlNoSuccess,
		run:  func(e *sqlEnv) { e.befall(sqlFault{"a read-only server", e.sql.Errors.ReadOnly, anyStep, false}) },
	},
	{
		name: "faults/lost-before-sending", needs: "Errors.LostBefore",
		rule: "Where the connection is lost before anything was sent " + sqlNoSuccess,
		run: func(e *sqlEnv) {
			e.befall(sqlFault{"a connection lost before sending", e.sql.Errors.LostBefore, anyStep, false})
		},
	},
	{
		name: "faults/sent-again", needs: sqlBadConn,
		rule: "Where database/sql itself sends a statement again, since nothing was sent on the dead connection, the call goes on as if nothing had happened.",
		run:  func(e *sqlEnv) { e.sendAgain() },
	},
	{
		name: "faults/lost-after-sending", needs: "Errors.LostAfter",
		rule: sqlLostReply,
		run: func(e *sqlEnv) {
			e.befall(sqlFault{"a connection lost after sending", e.sql.Errors.LostAfter, anyStep, false})
		},
	},
	{
		name: "faults/lost-while-reading", needs: "Errors.LostAfter",
		rule: "Rows count only when all of them have arrived: where the connection dies behind the rows " + sqlNoSuccess,
		run: func(e *sqlEnv) {
			e.befall(sqlFault{"a connection lost behind the rows", e.sql.Errors.LostAfter, readsRows, true})
		},
	},
	{
		name: "faults/commit", needs: sqlOwnTransaction + " " + sqlCommitError,
		rule: "A commit that failed is no success, and may have taken effect: " + sqlNoSuccess,
		run: func(e *sqlEnv) {
			commits := func(step SQLStep) bool { return step.Do == SQLCommit }
			for _, err := range e.sql.commitErrors() {
				e.befall(sqlFault{"a failed commit", err, commits, false})
			}
		},
	},
	{
		name: "faults/effect-without-reply", needs: "Errors.LostAfter",
		rule: "Where a call took effect and its reply was lost, a repeat with the same arguments recognises that, and answers as the first one would have.",
		run:  func(e *sqlEnv) { e.loseReplies() },
	},
}

// faulty calls f for each scenario that can be played, and each of its steps
// that is the store's own.
func (e *sqlEnv) faulty(f func(sc SQLScenario, steps []SQLStep, i int)) {
	for _, sc := range SQLScenarios() {
		steps, ok := e.sql.Scripts[sc.Name]
		if !ok || isCost(sc.Name) || e.settings.whyNot(sc.Name, sc.needs) != "" {
			continue // a missing script is a failure of its own
		}
		if !e.playsWell(sc, steps) {
			continue // its own case says so
		}
		for i, step := range steps {
			callers := isCallersTx(sc.Name) && step.Do >= SQLBegin
			if step.Do != SQLRollback && !callers && !step.AfterRows {
				f(sc, steps, i)
			}
		}
	}
}

// befall has each step of each script go wrong, once.
func (e *sqlEnv) befall(fault sqlFault) {
	e.faulty(func(sc SQLScenario, steps []SQLStep, i int) {
		if !fault.at(steps[i]) {
			return
		}
		about := fmt.Sprintf("%s, %s at step %d (%v): ", sc.Name, fault.name, i+1, steps[i])
		broken := steps[i]
		broken.Err, broken.AfterRows = fault.err, fault.late
		first := append(steps[:i:i], broken)
		if !fault.late {
			first = append(first, slices.Repeat([]SQLStep{broken}, sentAgain(fault.err, steps, i))...)
		}
		if inTransaction(steps, i) && broken.Do != SQLCommit {
			first = append(first, SQLStep{Do: SQLRollback})
		}
		run := e.play(slices.Concat(first, remaining(steps, i)))
		err := sc.call(e, run.store, run.DB()).err
		if !e.wantFault(fault, err, run, len(first), about) {
			return
		}
		again := sc.call(e, run.store, run.DB())
		e.wantPlayed(run, about+"the repeat: ")
		e.wantAnswer(sc, again, " (the repeat after "+fault.name+")")
	})
}

func (e *sqlEnv) wantFault(fault sqlFault, err error, run sqlRun, asked int, about string) bool {
	var batch *core.BatchError
	ok := false
	switch {
	case err == nil:
		e.Errorf("%sgot no error, want one: the outcome is unknown", about)
	case errors.Is(fault.err, e.sql.Errors.LockTimeout) && onlyBusy(err):
		ok = true
	case errors.As(err, &batch):
		e.Errorf("%sgot a *core.BatchError (%v), want another error: it says that all other items took effect", about, err)
	case !errors.Is(err, fault.err):
		e.Errorf("%sgot error %v, want one that wraps the driver's: %v", about, err, fault.err)
	default:
		ok = true
	}
	if got := run.Asked(); got != asked {
		e.Errorf("%sgot %d steps asked in all, want %d: after the error nothing but a rollback", about, got, asked)
		ok = false
	}
	e.wantClosed(run, about)
	return ok
}

// badConns is how often database/sql tries again, on other connections, after
// driver.ErrBadConn.
const badConns = 2

// sentAgain says how often database/sql sends step i again by itself.
func sentAgain(err error, steps []SQLStep, i int) int {
	if !errors.Is(err, driver.ErrBadConn) || inTransaction(steps, i) {
		return 0
	}
	return badConns
}

// inTransaction tells whether step i is asked within a transaction.
func inTransaction(steps []SQLStep, i int) bool {
	open := false
	for _, step := range steps[:i] {
		switch step.Do {
		case SQLBegin:
			open = true
		case SQLCommit, SQLRollback:
			open = false
		}
	}
	return open
}

// remaining is the script of a repeat after step i failed: what a store asks
// only once it has asked already.
func remaining(steps []SQLStep, i int) []SQLStep {
	var out []SQLStep
	for k, step := range steps {
		if !step.Once || k >= i {
			out = append(out, step)
		}
	}
	return out
}

func (e *sqlEnv) sendAgain() {
	e.faulty(func(sc SQLScenario, steps []SQLStep, i int) {
		if sentAgain(e.sql.Errors.LostBefore, steps, i) == 0 {
			return
		}
		dead := SQLStep{Do: steps[i].Do, Text: steps[i].Text, Args: steps[i].Args, Err: e.sql.Errors.LostBefore}
		run := e.play(slices.Concat(steps[:i], []SQLStep{dead}, steps[i:]))
		got := sc.call(e, run.store, run.DB())
		e.wantPlayed(run, fmt.Sprintf("%s, sent again at step %d: ", sc.Name, i+1))
		e.wantAnswer(sc, got, " (sent again)")
	})
}

// loseReplies loses the reply to the last step of each call that has a scenario
// for its repeat; all effects are before that.
func (e *sqlEnv) loseReplies() {
	e.faulty(func(sc SQLScenario, steps []SQLStep, i int) {
		again, ok := scenario(sc.again)
		if !ok || i != len(steps)-1 || e.settings.whyNot(again.Name, again.needs) != "" {
			return
		}
		answers := e.script(again)
		if !e.playsWell(again, answers) {
			return // its own case says so
		}
		broken := steps[i]
		broken.Err = e.sql.Errors.LostAfter
		first := append(steps[:i:i], broken)
		run := e.play(slices.Concat(first, remaining(answers, len(answers))))
		about := fmt.Sprintf("%s, repeated with the effect there: ", sc.Name)
		fault := sqlFault{"a lost reply", e.sql.Errors.LostAfter, anyStep, false}
		if !e.wantFault(fault, sc.call(e, run.store, run.DB()).err, run, len(first), about) {
			return
		}
		got := sc.call(e, run.store, run.DB())
		e.wantPlayed(run, about)
		e.wantAnswer(sc, got, " (the repeat after a lost reply)")
	})
}

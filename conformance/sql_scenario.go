package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// SQLScenario is one call on a store in a described state of the database, for
// which an adapter's author writes a script.
type SQLScenario struct {
	// Name is group/what.
	Name string
	// Rule is the MUST that the scenario checks.
	Rule string
	// State is what the database has and does, and Call what is called, in words.
	// T is 1893553445678, the made-up present in milliseconds since 1970.
	State, Call string

	needs string
	// again names the scenario whose script is what the database answers to a
	// repeat of the call after the reply to its last step was lost.
	again string
	call  func(e *sqlEnv, s core.Store, db *sql.DB) sqlAnswer
	want  sqlAnswer
}

// sqlAnswer is what a call returned, or is to return.
type sqlAnswer struct {
	claimed []core.Claimed
	fates   []core.Fate
	entries []core.Entry
	now     time.Time
	count   int
	err     error
	refused []refusal // wanted: a *core.BatchError of these
}

// SQLScenarios returns all scenarios of TestSQL, whether or not a store needs
// them (those about a TimeSource, a Purger, kept finished rows or the caller's
// transaction need that).
func SQLScenarios() []SQLScenario {
	return slices.Concat(sqlInserts, sqlClaims, sqlExtends, sqlSettles, sqlCancels, sqlReschedules, sqlSweeps, sqlTransactions, sqlCosts)
}

func scenario(name string) (SQLScenario, bool) {
	all := SQLScenarios()
	i := slices.IndexFunc(all, func(sc SQLScenario) bool { return sc.Name == name })
	if i < 0 {
		return SQLScenario{}, false
	}
	return all[i], true
}

// What all scenarios pass. The three instants of the lease differ, so that a
// store which takes one for another shows.
var (
	sqlCall  = core.Call{ID: "call-1", Now: base}
	sqlLease = core.Lease{Holder: "holder-1", Now: at(-2000), DueBy: at(50), Until: at(30_000)}
)

// The words for them in each scenario's Call.
const (
	sqlCallWords  = `Call{ID: "call-1", Now: T}`
	sqlLeaseWords = `Lease{Holder: "holder-1", Now: T-2000, DueBy: T+50, Until: T+30000}`
	sqlTaskWords  = `each Task{Kind: "mail", Payload: "payload of "+ID, Meta: {1}, MaxAttempts: 7}`
)

// sqlGrant is a grant of sqlLease's.
func sqlGrant(id core.ID, token int64) core.Grant {
	return core.Grant{ID: id, Token: token, Holder: sqlLease.Holder}
}

// sqlGranted is the verdict for a task of the fixture.
func sqlGranted(id core.ID, token int64, due time.Time, attempt, crashes int) core.Claimed {
	return core.Claimed{
		ID: id, Verdict: core.Granted, At: sqlLease.Until, Grant: sqlGrant(id, token), Task: task(id, due),
		Attempt: attempt, Crashes: crashes,
	}
}

func (a sqlAnswer) values() string {
	var b strings.Builder
	for _, c := range a.claimed {
		fmt.Fprintf(&b, "%q %v", c.ID, c.Verdict)
		if c.Verdict == core.Granted {
			fmt.Fprintf(&b, " token %d holder %q kind %q payload %q meta %q due %s max %d attempt %d crashes %d", c.Grant.Token,
				c.Grant.Holder, c.Task.Kind, c.Task.Payload, c.Task.Meta, stamp(c.Task.Due), c.Task.MaxAttempts, c.Attempt, c.Crashes)
		}
		fmt.Fprintf(&b, " at %s\n", stamp(c.At))
	}
	for _, f := range a.fates {
		fmt.Fprintf(&b, "fate %v\n", f)
	}
	for _, line := range show(a.entries) {
		fmt.Fprintln(&b, line)
	}
	if !a.now.IsZero() {
		fmt.Fprintln(&b, "now", stamp(a.now))
	}
	if a.count > 0 {
		fmt.Fprintln(&b, "count", a.count)
	}
	return b.String()
}

// wantAnswer fails unless got is the scenario's answer.
func (e *sqlEnv) wantAnswer(sc SQLScenario, got sqlAnswer, about string) {
	about = fmt.Sprintf("%s%s\n\tthe call: %s\n\tthe database: %s", sc.Name, about, sc.Call, sc.State)
	if len(sc.want.refused) > 0 {
		e.wantRefusals(got.err, sc.want.refused, about)
	} else if got.err != nil {
		e.Errorf("%s\n\tgot error %v, want none", about, got.err)
		return
	}
	if w, g := sc.want.values(), got.values(); w != g {
		e.Errorf("%s\n\tgot:\n%s\n\twant:\n%s", about, g, w)
	}
}

// inTx runs f in a transaction of the caller's, as a handler would: committed
// unless f returns an error that isn't about items alone.
func (e *sqlEnv) inTx(db *sql.DB, f func(ctx context.Context, tx *sql.Tx) error) sqlAnswer {
	tx, err := db.BeginTx(e.ctx, nil)
	if err != nil {
		return sqlAnswer{err: err}
	}
	err = f(e.ctx, tx)
	var batch *core.BatchError
	if err != nil && !errors.As(err, &batch) {
		return sqlAnswer{err: errors.Join(err, tx.Rollback())}
	}
	if commitErr := tx.Commit(); commitErr != nil {
		return sqlAnswer{err: commitErr}
	}
	return sqlAnswer{err: err}
}

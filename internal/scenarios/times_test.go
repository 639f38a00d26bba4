package scenarios

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/mysqlclaim"
)

// https://github.com/celery/kombu/issues/337 (and celery#2599, #3270, #2481, #4400):
// a task with a time further off than the visibility time-out ran many times, as
// workers held it in memory while the broker gave it to others. Right: a task that is
// due later than any lease lasts, and one that works longer than that, run once;
// nobody holds a task before its time.
func TestR21ATaskFurtherOffThanALeaseRunsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		const workers, n, lease = 4, 100, 2 * time.Second
		off, worked := scale(5*time.Second, 15*time.Second), scale(5*time.Second, 10*time.Second)
		j := newJournal()
		var all []*worker
		for i := range workers {
			opt := options(lease)
			opt.Slots = n
			h := fleet.Connect(t, b.At)
			all = append(all, j.start(t, fmt.Sprint("w", i), h.Index, h.Store, lasting(worked), opt))
		}
		due := time.Now().Add(off)
		ids := b.Schedule(t, "t", "job", n, func(int) time.Time { return due })
		for time.Until(due) > 300*time.Millisecond { // well before the 50 ms that a task may be claimed ahead
			require.Equal(t, n, b.Count(t, claim.Pending), "held before their time")
			time.Sleep(100 * time.Millisecond)
		}
		fleet.Until(t, 60*time.Second, "all are done", func() bool { return j.completed(ids) == n })
		for _, w := range all {
			w.stop()
		}
		j.wantOnce(t, ids)
		for _, id := range ids {
			assert.False(t, j.of(id)[0].from.Before(due.Add(-time.Millisecond)), "%s: early", id)
		}
		figure(t, "%d tasks due in %v that work for %v under leases of %v, %d workers: all once, greatest lateness %v", n, off, worked, lease, workers, j.latest(ids).Round(time.Millisecond))
	})
}

// frame shows a store and an index to a worker as they look from a process whose wall
// clock is off: every time that passes is moved by the offset, also the store's
// clock. This process's clock stays as it is, so to the worker it is the one
// that is wrong; whatever it would compare with the store's times, or write,
// would be off for all others.
type frame struct {
	core.Store
	clock  core.TimeSource
	idx    core.TimeIndex
	offset time.Duration
}

func (f frame) out(t time.Time) time.Time { // to the backend
	if t.IsZero() {
		return t
	}
	return t.Add(-f.offset)
}

func (f frame) in(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(f.offset)
}

func (f frame) entries(list []core.Entry, move func(time.Time) time.Time) []core.Entry {
	list = slices.Clone(list)
	for i := range list {
		list[i].Due = move(list[i].Due)
	}
	return list
}

func (f frame) Now(ctx context.Context) (time.Time, error) {
	now, err := f.clock.Now(ctx)
	return f.in(now), err
}

func (f frame) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	lease.Now, lease.DueBy, lease.Until = f.out(lease.Now), f.out(lease.DueBy), f.out(lease.Until)
	claimed, err := f.Store.Claim(ctx, ids, lease)
	claimed = slices.Clone(claimed)
	for i := range claimed {
		claimed[i].At, claimed[i].Task.Due = f.in(claimed[i].At), f.in(claimed[i].Task.Due)
	}
	return claimed, err
}

func (f frame) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return f.Store.Extend(ctx, grants, f.out(until))
}

func (f frame) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	settlements = slices.Clone(settlements)
	for i := range settlements {
		settlements[i].Due = f.out(settlements[i].Due)
	}
	return f.Store.Settle(ctx, f.out(now), settlements)
}

func (f frame) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	after.Due = f.out(after.Due)
	if before.Year() < 9000 { // else: all there are
		before = f.out(before)
	}
	rows, err := f.Store.Waiting(ctx, f.out(now), after, before, limit)
	return f.entries(rows, f.in), err
}

// index is the frame's TimeIndex.
func (f frame) index() core.TimeIndex { return framedIndex{f} }

type framedIndex struct{ f frame }

func (x framedIndex) Add(ctx context.Context, entries []core.Entry) error {
	return x.f.idx.Add(ctx, x.f.entries(entries, x.f.out))
}

func (x framedIndex) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if now.Year() < 9000 {
		now = x.f.out(now)
	}
	due, err := x.f.idx.Due(ctx, now, limit)
	return x.f.entries(due, x.f.in), err
}

func (x framedIndex) Move(ctx context.Context, moves []core.Move) error {
	moves = slices.Clone(moves)
	for i := range moves {
		moves[i].From, moves[i].To = x.f.out(moves[i].From), x.f.out(moves[i].To)
	}
	return x.f.idx.Move(ctx, moves)
}

func (x framedIndex) Remove(ctx context.Context, entries []core.Entry) error {
	return x.f.idx.Remove(ctx, x.f.entries(entries, x.f.out))
}

// https://github.com/kagkarlsson/db-scheduler/issues/433 (and #364),
// https://github.com/Koed00/django-q/issues/236: with clocks that differ, living executions were
// declared dead and schedules missed, as workers compared leases with their own
// clocks. Right: with workers five minutes behind and ahead no live lease is taken,
// nothing starts early, and nothing is later than else.
func TestR40WorkersWhoseClocksAreMinutesOffDisturbNobody(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		n := fleet.Rounds(150, 500)
		const lease = 2 * time.Second
		j := newJournal()
		var all []*worker
		for _, offset := range []time.Duration{-5 * time.Minute, 0, 5 * time.Minute} {
			f := frame{Store: b.Store, clock: b.Clock, idx: b.Index, offset: offset}
			all = append(all, j.start(t, offset.String(), f.index(), f, lasting(4*time.Second), options(lease)))
		}
		due := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
		ids := b.Schedule(t, "t", "job", n, func(i int) time.Time { return due.Add(time.Duration(i) * 2 * time.Millisecond) })
		fleet.Until(t, 60*time.Second, "all are done", func() bool { return j.completed(ids) == n })
		for _, w := range all {
			w.stop()
		}
		j.wantOnce(t, ids)
		by := map[string]int{}
		var latest time.Duration
		for i, id := range ids {
			r := j.of(id)[0]
			by[r.worker]++
			late := r.from.Sub(due.Add(time.Duration(i) * 2 * time.Millisecond))
			assert.Greater(t, late, -2*time.Millisecond, "%s: early", id)
			latest = max(latest, late)
		}
		if crowd() < 2 {
			assert.Zero(t, j.counted(&j.lost), "leases lost")
		}
		assert.Less(t, latest, bound(3*time.Second))
		figure(t, "%d tasks of two leases each, by worker's clock offset %v: all once, greatest lateness %v", n, by, latest.Round(time.Millisecond))
	})
}

// https://github.com/kagkarlsson/db-scheduler/pull/779: the due time changed by itself
// on MariaDB: its column, the first TIMESTAMP of the table, had an ON UPDATE that
// nobody had asked for. Right: Verify names the column and refuses; on a table
// without it the due time stays as it is through claim, heartbeat and completion.
func TestR39ADueColumnThatChangesByItselfIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB)
	conn, err := b.DB.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := conn.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	const columns = `(id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
		run_at %s, token BIGINT NOT NULL DEFAULT 0, holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '', lease_end BIGINT NULL, attempts INT NOT NULL DEFAULT 0,
		KEY (status, run_at))`
	exec("SET SESSION explicit_defaults_for_timestamp = 0")
	exec("CREATE TABLE implicit_update " + fmt.Sprintf(columns, "TIMESTAMP(3) NOT NULL"))
	exec("SET SESSION explicit_defaults_for_timestamp = 1")
	exec("CREATE TABLE stays " + fmt.Sprintf(columns, "TIMESTAMP(3) NOT NULL DEFAULT '2030-01-01'"))
	table := func(name string) *mysqlclaim.Table {
		x, err := mysqlclaim.NewTable(b.DB, claim.Table{
			Name: name, ID: claim.IDColumn{Name: "id"},
			State: claim.StateColumn{Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("done")},
			Due:   claim.DueTime{Column: claim.TimeColumn{Name: "run_at", Kind: claim.Timestamp, Digits: 3}},
			Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease_end"}, Attempts: "attempts",
		})
		require.NoError(t, err)
		return x
	}
	on := func(findings claim.Findings) (got []string) {
		for _, f := range findings {
			if f.Code == "on-update" && f.Severity == claim.Fault {
				got = append(got, f.Column)
			}
		}
		return got
	}
	findings, err := table("implicit_update").Verify(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"run_at"}, on(findings), "%v", findings)

	good := table("stays")
	findings, err = good.Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, on(findings))
	dueOf := func() (due sql.NullFloat64) {
		t.Helper()
		require.NoError(t, b.DB.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP(run_at) FROM stays WHERE id = 'a'").Scan(&due))
		require.True(t, due.Valid)
		return due
	}
	exec("INSERT INTO stays (id, status, run_at) VALUES ('a', 'pending', NOW(3) - INTERVAL 1 HOUR)")
	before := dueOf()
	grants := granted(t, good, holding("h"), []core.ID{"a"})
	assert.Equal(t, before, dueOf(), "after a claim")
	require.NoError(t, good.Extend(t.Context(), grants, time.Now().Add(2*time.Minute).Truncate(time.Millisecond)))
	assert.Equal(t, before, dueOf(), "after a heartbeat")
	retry := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	require.NoError(t, good.Settle(t.Context(), time.Now().Truncate(time.Millisecond), []core.Settlement{{Grant: grants[0], Outcome: core.Retry, Due: retry}}))
	assert.InDelta(t, float64(retry.UnixMilli())/1000, dueOf().Float64, 0.0005, "after a retry: what was asked for")
	// And the scheduler on it, with a heartbeat in between.
	before = dueOf()
	j := newJournal()
	var mux core.Mux
	mux.Register("", j.watched("w", lasting(time.Second)))
	opt := options(time.Second)
	opt.Observer, opt.Logger = j.observer(), slog.New(slog.DiscardHandler)
	s, err := core.New(heapindex.New(), good, &mux, opt)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	fleet.Until(t, 20*time.Second, "it is done", func() bool { return j.completed([]core.ID{"a"}) == 1 })
	cancel()
	require.NoError(t, <-ended)
	assert.Equal(t, before, dueOf(), "after it was done")
}

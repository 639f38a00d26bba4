package pgclaim

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// worker makes a role with no rights at first, and returns its name and its URL.
func worker(t *testing.T, owner *Store, at string) (role, login string) {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	role = "w_" + strings.TrimPrefix(u.Path, "/")
	owner.exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD 'wrk-s3cret'")
	t.Cleanup(func() {
		r, err := owner.runner(context.WithoutCancel(t.Context()))
		require.NoError(t, err)
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			_ = r.run(context.WithoutCancel(t.Context()), statement, nil, func(scanner) error { return nil })
		}
	})
	u.User = url.UserPassword(role, "wrk-s3cret")
	return role, u.String()
}

// refused is an error that comes soon, says that a right is missing and for what,
// and doesn't show the password.
func refused(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := call(ctx)
	require.NoError(t, ctx.Err(), "%s hangs", what)
	require.ErrorContains(t, err, "permission denied for table "+claim.DefaultTable, "%s", what)
	assert.NotContains(t, err.Error(), "s3cret", "%s", what)
}

// TestARoleWithFourGrantsOnTheTableDoesTheWholeJob: what docs/operations.md says a
// worker needs is all that it needs, and all that it has.
func TestARoleWithFourGrantsOnTheTableDoesTheWholeJob(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		at := testserver.Postgres(t)
		owner := d.open(t, at, Options{})
		require.NoError(t, owner.Migrate(t.Context()))
		role, login := worker(t, owner, at)
		owner.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON dueclaim_tasks TO "+role)
		owner.exec(t, "REVOKE CREATE, TEMPORARY ON DATABASE "+login[strings.LastIndexByte(login, '/')+1:strings.IndexByte(login, '?')]+" FROM PUBLIC")
		owner.exec(t, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
		s := d.open(t, login, Options{})
		for _, ddl := range []string{"CREATE TABLE x (a int)", "CREATE TEMPORARY TABLE x (a int)", "ALTER TABLE dueclaim_tasks ADD x int", "DROP TABLE dueclaim_tasks", "TRUNCATE dueclaim_tasks"} {
			r, err := s.runner(t.Context())
			require.NoError(t, err)
			require.Error(t, r.run(t.Context(), ddl, nil, func(scanner) error { return nil }), "%s", ddl)
		}
		require.NoError(t, s.Migrate(t.Context()), "where nothing is to do it needs no right")
		for _, o := range []Options{{Queue: "kept"}, {Queue: "deleted", DeleteFinished: true}} {
			wholeJob(t, d.open(t, login, o))
		}
		refusals(t, owner, s, role)
	})
}

// wholeJob runs a producer and a scheduler on a store.
func wholeJob(t *testing.T, s *Store) {
	ctx := t.Context()
	producer, err := core.NewProducer(heapindex.New(), s, core.ProducerOptions{})
	require.NoError(t, err)
	now := time.Now()
	require.NoError(t, producer.Schedule(ctx, core.Task{ID: "a", Due: now}, core.Task{ID: "b", Due: now}, core.Task{ID: "c", Due: now.Add(time.Hour)}, core.Task{ID: "d", Due: now.Add(time.Hour)}))
	require.NoError(t, producer.Reschedule(ctx, core.Move{ID: "c", To: now}))
	fates, err := producer.Cancel(ctx, "d")
	require.NoError(t, err)
	require.Equal(t, []core.Fate{core.Cancelled}, fates)
	u := s.begin(t, ctx)
	require.NoError(t, u.insert(ctx, core.Call{ID: "in-tx", Now: now}, core.Task{ID: "e", Due: now}))
	require.NoError(t, u.commit(ctx))
	runs := 0
	// The scheduler's index is empty: it finds its tasks by sweeps alone.
	handler := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		runs++
		if job.Task.ID != "a" {
			return nil
		}
		u := s.begin(t, ctx)
		if err := u.settle(ctx, job.Now(), job.Done()); err != nil {
			return err
		}
		if err := u.commit(ctx); err != nil {
			return err
		}
		return core.Settled
	})
	scheduler, err := core.New(heapindex.New(), s, handler, core.Options{Slots: 1})
	require.NoError(t, err)
	for range 10 {
		_, err = scheduler.Tick(ctx, time.Now().Add(5*time.Second))
		require.NoError(t, err)
	}
	assert.Equal(t, 4, runs)
	left, err := s.Waiting(ctx, now, core.Entry{}, now.Add(24*time.Hour), 10)
	require.NoError(t, err)
	assert.Empty(t, left)
	got := s.claimAfter(t, producer, "f")
	require.NoError(t, s.Extend(ctx, []core.Grant{got}, time.Now().Add(time.Minute)))
	require.NoError(t, s.Settle(ctx, now, []core.Settlement{{Grant: got, Outcome: core.Retry, Due: now, Err: "it's late"}}))
	_, err = s.Purge(ctx, now.Add(time.Hour), 100)
	require.NoError(t, err)
}

func (s *Store) claimAfter(t *testing.T, p *core.Producer, id core.ID) core.Grant {
	t.Helper()
	now := time.Now()
	require.NoError(t, p.Schedule(t.Context(), core.Task{ID: id, Due: now}))
	return s.claimOne(t, id, core.Lease{Holder: "h", Now: now, DueBy: now.Add(time.Second), Until: now.Add(time.Minute)}).Grant
}

// refusals takes one right away at a time.
func refusals(t *testing.T, owner, s *Store, role string) {
	g := core.Grant{ID: "x", Token: 1, Holder: "h"}
	claimIt := func(ctx context.Context) error {
		_, err := s.Claim(ctx, []core.ID{"x"}, lease("h", 0))
		return err
	}
	type step struct {
		what string
		call func(context.Context) error
	}
	for right, steps := range map[string][]step{
		"INSERT": {
			{"insert", func(ctx context.Context) error { return s.Insert(ctx, call("c"), []core.Task{task("x", 0)}) }},
			{"schedule", func(ctx context.Context) error {
				p, err := core.NewProducer(heapindex.New(), s, core.ProducerOptions{})
				require.NoError(t, err)
				return p.Schedule(ctx, task("x", 0))
			}},
		},
		"UPDATE": {
			{"claim", claimIt},
			{"extend", func(ctx context.Context) error { return s.Extend(ctx, []core.Grant{g}, at(9000)) }},
			{"settle", func(ctx context.Context) error {
				return s.Settle(ctx, base, []core.Settlement{{Grant: g, Outcome: core.Done}})
			}},
			{"reschedule", func(ctx context.Context) error {
				return s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: "x", To: base}})
			}},
			{"cancel", func(ctx context.Context) error {
				_, err := s.Cancel(ctx, core.Call{Now: base}, []core.ID{"x"})
				return err
			}},
		},
		"DELETE": {{"purge", func(ctx context.Context) error { _, err := s.Purge(ctx, base, 10); return err }}},
		"SELECT": {
			{"claim", claimIt},
			{"sweep", func(ctx context.Context) error {
				_, err := s.Waiting(ctx, base, core.Entry{}, at(1), 10)
				return err
			}},
		},
	} {
		owner.exec(t, "REVOKE "+right+" ON dueclaim_tasks FROM "+role)
		for _, step := range steps {
			refused(t, step.what+" without "+right, step.call)
		}
		owner.exec(t, "GRANT "+right+" ON dueclaim_tasks TO "+role)
	}
}

// TestAUsersTableNeedsSelectAndUpdateOfWhatIsWritten: rights on the columns that
// Verify lists under writes are enough, and without them the error says so.
func TestAUsersTableNeedsSelectAndUpdateOfWhatIsWritten(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		owner := d.open(t, url, Options{})
		role, login := worker(t, owner, url)
		for _, c := range tabletest.WrittenColumns() {
			name := "grants_" + c.Name
			t.Run(name, func(t *testing.T) {
				owner.exec(t, "CREATE TABLE "+name+" (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'new', token bigint NOT NULL DEFAULT 0, holder text NOT NULL DEFAULT '', lease bigint DEFAULT 0, born bigint NOT NULL DEFAULT 0, failure text)")
				owner.exec(t, "INSERT INTO "+name+" (id) VALUES (1), (2), (3)")
				def := claim.Table{
					Name: name, ID: claim.IDColumn{Name: "id", Kind: claim.IntegerID},
					State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("at work"), Done: claim.Text("done")},
					Due:   claim.DueTime{Base: claim.TimeColumn{Name: "born"}},
					Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease"}, LastError: "failure",
				}
				c.Change(&def)
				table := d.open(t, login, Options{}).onTable(t, def)
				owner.exec(t, "GRANT SELECT ON "+name+" TO "+role)
				if def.Mode() != claim.Transition { // there a claim only reads
					_, err := table.Claim(t.Context(), []core.ID{"1"}, lease("h0", 0))
					require.ErrorContains(t, err, "permission denied for table "+name)
				}
				owner.exec(t, "GRANT UPDATE ("+c.Columns+") ON "+name+" TO "+role)
				got, err := table.Claim(t.Context(), []core.ID{"1", "2", "3"}, core.Lease{Holder: "h", Now: base, DueBy: base, Until: base.Add(30 * time.Second)})
				require.NoError(t, err)
				for _, g := range got {
					require.Equal(t, core.Granted, g.Verdict, "%s", g.ID)
				}
				require.NoError(t, table.Extend(t.Context(), []core.Grant{got[0].Grant}, at(40)))
				settlements := []core.Settlement{{Grant: got[1].Grant, Outcome: core.Retry, Due: at(5), Err: "it's late"}}
				if def.Mode() != claim.Transition {
					settlements = append(settlements, core.Settlement{Grant: got[2].Grant, Outcome: core.Done})
				}
				require.NoError(t, table.Settle(t.Context(), at(1), settlements))
				_, err = table.Waiting(t.Context(), at(10), core.Entry{}, at(1000), 10)
				require.NoError(t, err)
				found, err := table.Verify(t.Context())
				require.NoError(t, err)
				for _, f := range found {
					assert.NotEqual(t, "privilege", f.Code, "%s", found)
				}
			})
		}
	})
}

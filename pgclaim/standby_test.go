package pgclaim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// withStandby starts a primary whose commits wait for a standby, and returns a database
// on it and the standby.
func withStandby(t *testing.T) (primary string, standby *testserver.Server) {
	t.Helper()
	first := testserver.PrivatePostgres(t)
	primary = first.URL()
	standby = testserver.Private(t, server.Postgres, server.Options{Upstream: primary})
	admin := native.open(t, primary, Options{})
	admin.exec(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	admin.exec(t, "SELECT pg_reload_conf()")
	require.Eventually(t, func() bool {
		return len(admin.text(t, "SELECT pid::text FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'")) == 1
	}, 20*time.Second, 20*time.Millisecond)
	resetAfter(t, primary, "synchronous_standby_names") // what ends the test would wait for the standby
	return primary, standby
}

// While the standby is away a call waits for it and times out. Postgres has committed all
// the same, so a repeat finds what it wants, and must wait too before it says so.
func TestARepeatIsAsDurableAsTheFirstTry(t *testing.T) {
	drivers := []driver{native}
	if stress() {
		drivers = append(drivers, standard, driver{native: true, mode: -1})
	}
	for _, d := range drivers {
		if d.mode < 0 {
			d.mode = allModes[len(allModes)-1]
		}
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			t.Parallel()
			primary, standby := withStandby(t)
			s := d.open(t, primary, Options{})
			require.NoError(t, s.Migrate(t.Context()))
			watch := native.open(t, primary, Options{})
			s.exec(t, `CREATE TABLE orders (id text PRIMARY KEY, status text, due bigint, token bigint, holder text, lease bigint)`)
			s.exec(t, "INSERT INTO orders VALUES ('o', 'pending', 0)")
			table, err := newTable(s.handle, claim.Table{
				Name: "orders", ID: claim.IDColumn{Name: "id", Kind: claim.TextID},
				State: claim.StateColumn{Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("taken"), Done: claim.Text("done")},
				Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.UnixMilli}},
				Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.UnixMilli},
			})
			require.NoError(t, err)
			require.NoError(t, s.Insert(t.Context(), call("ready"), []core.Task{task("a", 0), task("b", 0), task("c", 0)}))
			var grant, ofTable core.Grant
			inserts := 0
			for _, step := range []struct {
				name string
				call func(ctx context.Context) error
			}{
				{"insert", func(ctx context.Context) error { return s.Insert(ctx, call("i"), []core.Task{task("new", 0)}) }},
				{"insert of an id that exists", func(ctx context.Context) error {
					// The first try is another producer's. Who is told that it exists may rely on it.
					inserts++
					err := s.Insert(ctx, call(fmt.Sprint("other", min(inserts, 2))), []core.Task{task("newer", 0)})
					if errors.Is(err, core.ErrExists) {
						return nil
					}
					return err
				}},
				{"insert in a transaction", func(ctx context.Context) error {
					tx := s.begin(t, context.WithoutCancel(ctx))
					if err := tx.insert(ctx, call("tx"), task("in-tx", 0)); err != nil {
						return err
					}
					return tx.commit(ctx)
				}},
				{"claim", func(ctx context.Context) error {
					claimed, err := s.Claim(ctx, []core.ID{"a"}, lease("h", 0))
					if err == nil {
						grant = claimed[0].Grant
					}
					return err
				}},
				{"extend", func(ctx context.Context) error { return s.Extend(ctx, []core.Grant{grant}, at(60)) }},
				{"settle", func(ctx context.Context) error {
					return s.Settle(ctx, at(1), []core.Settlement{{Grant: grant, Outcome: core.Done}})
				}},
				{"reschedule", func(ctx context.Context) error {
					return s.Reschedule(ctx, call("m"), []core.Move{{ID: "b", To: at(9)}})
				}},
				{"cancel", func(ctx context.Context) error { _, err := s.Cancel(ctx, call("x"), []core.ID{"c"}); return err }},
				{"claim of a table", func(ctx context.Context) error {
					claimed, err := table.Claim(ctx, []core.ID{"o"}, lease("h", 0))
					if err == nil {
						ofTable = claimed[0].Grant
					}
					return err
				}},
				{"extend of a table", func(ctx context.Context) error { return table.Extend(ctx, []core.Grant{ofTable}, at(60)) }},
				{"settle of a table", func(ctx context.Context) error {
					return table.Settle(ctx, at(1), []core.Settlement{{Grant: ofTable, Outcome: core.Done}})
				}},
			} {
				before := watch.text(t, "SELECT pg_current_wal_lsn()::text")[0]
				standby.Stop()
				for try := range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					err := step.call(ctx)
					cancel()
					if !assert.Error(t, err, "%s, try %d: the standby doesn't have it", step.name, try) {
						break
					}
					assert.NotErrorIs(t, err, core.ErrNotDone, step.name)
					require.Eventually(t, func() bool {
						return watch.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0] == "0"
					}, 20*time.Second, 10*time.Millisecond)
				}
				standby.Cont()
				require.NoError(t, step.call(t.Context()), step.name)
				assert.NotEqual(t, before, watch.text(t, "SELECT pg_current_wal_lsn()::text")[0], step.name)
			}
		})
	}
}

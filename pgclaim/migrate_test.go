package pgclaim

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestMigrateByManyProcessesAtOnce(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		d.open(t, url, Options{}).exec(t, "CREATE SCHEMA app")
		var wg sync.WaitGroup
		for range 8 {
			s := d.open(t, url, Options{Table: "app.jobs"})
			wg.Go(func() { assert.NoError(t, s.Migrate(t.Context())) })
		}
		wg.Wait()
		s := d.open(t, url, Options{Table: "app.jobs"})
		require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		assert.Equal(t, []string{"app.jobs_due app.jobs_finished app.jobs_pkey"},
			s.text(t, "SELECT string_agg(schemaname || '.' || indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'jobs'"))
		assert.Equal(t, []string{"2027-01-15 08:00:00+00"},
			s.text(t, "SELECT (due AT TIME ZONE 'UTC')::text || '+00' FROM app.jobs_view"))
	})
}

func TestMigrateOfACurrentTableNeedsNoRightAndNoLock(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	tx := s.begin(t, t.Context())
	require.NoError(t, tx.insert(t.Context(), call("c"), task("a", 0))) // an index would wait for it
	s.exec(t, "CREATE ROLE reader_"+strings.ToLower(t.Name())[:20])
	reader := native
	reader.session = map[string]string{"role": "reader_" + strings.ToLower(t.Name())[:20]}
	r := reader.open(t, s.pool.Config().ConnString(), Options{})
	require.NoError(t, r.Migrate(t.Context()))
	r.pool.Close()
	s.exec(t, "DROP ROLE reader_"+strings.ToLower(t.Name())[:20])
}

// Whoever would wait behind a DDL that waits is told, and the others go on.
func TestMigrateBehindAnOpenTransactionFailsSoonAndHoldsUpNobody(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		reader := s.begin(t, t.Context())
		require.NoError(t, reader.exec(t.Context(), "SELECT 1 FROM dueclaim_tasks_view"))
		require.NoError(t, s.Migrate(t.Context()), "nothing is to be done")

		s.exec(t, "COMMENT ON TABLE dueclaim_tasks IS NULL") // all is to be done again
		first := make(chan error, 1)
		go func() { first <- s.Migrate(context.WithoutCancel(t.Context())) }()
		s.waitingForLocks(t, 1)
		require.ErrorContains(t, s.Migrate(t.Context()), "another transaction has used dueclaim_tasks or its view and is still open")
		require.ErrorContains(t, <-first, "and call Migrate again")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.NoError(t, s.begin(t, ctx).exec(ctx, "SELECT 1 FROM dueclaim_tasks_view"), "another reader")
		reader.rollback()
	})
}

func TestMigrateLeavesATableOfANewerReleaseAlone(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	s.exec(t, "DROP VIEW dueclaim_tasks_view")
	s.exec(t, "COMMENT ON TABLE dueclaim_tasks IS 'dueclaim schema 99'")
	require.NoError(t, s.Migrate(t.Context()))
	assert.Equal(t, []string{"0"}, s.text(t, "SELECT count(*)::text FROM pg_views WHERE viewname = 'dueclaim_tasks_view'"))
	s.exec(t, "COMMENT ON TABLE dueclaim_tasks IS NULL")
	require.NoError(t, s.Migrate(t.Context()), "a comment that was lost is written again")
	assert.Equal(t, []string{"1"}, s.text(t, "SELECT count(*)::text FROM pg_views WHERE viewname = 'dueclaim_tasks_view'"))
}

func TestMigrateRefusesADatabaseThatIsNotUTF8(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	name := s.text(t, "SELECT current_database() || '_latin1'")[0]
	s.exec(t, `CREATE DATABASE "`+name+`" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
	latin := native.open(t, strings.Replace(s.pool.Config().ConnString(), strings.TrimSuffix(name, "_latin1"), name, 1), Options{})
	err := latin.Migrate(t.Context())
	latin.pool.Close()
	s.exec(t, `DROP DATABASE "`+name+`"`)
	require.ErrorContains(t, err, "encoding is LATIN1; want UTF8")
}

func TestMigrateRefusesATableOfSeveralParts(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	require.NoError(t, s.Migrate(t.Context()))
	s.exec(t, "CREATE TABLE parted (LIKE "+s.quoted()+" INCLUDING ALL) PARTITION BY LIST (queue)")
	s.exec(t, "CREATE TABLE parent (LIKE "+s.quoted()+" INCLUDING ALL)")
	s.exec(t, "CREATE TABLE child () INHERITS (parent)")
	for _, name := range []string{"parted", "parent"} {
		other := native.open(t, testserver.Postgres(t), Options{Table: name})
		other.pool = s.pool
		require.ErrorContains(t, other.Migrate(t.Context()), name+" is partitioned, has tables that inherit from it, or is no table; want a plain one", name)
	}
}

func TestNamesThatAreNoNamesAreRefused(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	for _, table := range []string{`a"b`, "a\x00b", "a;b", "1a", "a.b.c", " a", strings.Repeat("x", 55)} {
		_, err := New(s.pool, Options{Table: table})
		require.ErrorIs(t, err, core.ErrInvalid, "%q", table)
	}
	for _, queue := range []string{"a\x00b", "\xff", " a", strings.Repeat("x", 101)} {
		_, err := New(s.pool, Options{Queue: queue})
		require.ErrorIs(t, err, core.ErrInvalid, "%q", queue)
	}
	_, err := New(nil, Options{})
	require.ErrorIs(t, err, core.ErrInvalid)
	_, err = NewSQL(nil, Options{})
	require.ErrorIs(t, err, core.ErrInvalid)
	long, err := New(s.pool, Options{Table: strings.Repeat("x", 54), Queue: `quo'te"\`})
	require.NoError(t, err)
	require.NoError(t, long.Migrate(t.Context()))
	require.NoError(t, long.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
	long.claimOne(t, "a", lease("h", 0))
}

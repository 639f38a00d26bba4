package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// racers is a way to reach a store, by a driver and its settings.
type racers struct {
	name, backend string
	open          func(t *testing.T) fleet.Migrator
}

var configurations = []racers{
	{"mariadb", "store:mariadb", viaMySQL(testserver.MariaDB, "")},
	{"mariadb interpolateParams", "store:mariadb", viaMySQL(testserver.MariaDB, "interpolateParams=true")},
	{"mariadb clientFoundRows", "store:mariadb", viaMySQL(testserver.MariaDB, "clientFoundRows=true")},
	{"mysql", "store:mysql", viaMySQL(testserver.MySQL, "")},
	{"mysql interpolateParams clientFoundRows", "store:mysql", viaMySQL(testserver.MySQL, "interpolateParams=true&clientFoundRows=true")},
	{"pgx", "store:postgres (pgx)", viaPgx(pgx.QueryExecModeCacheStatement)},
	{"pgx simple protocol", "store:postgres (pgx)", viaPgx(pgx.QueryExecModeSimpleProtocol)},
	{"postgres database/sql", "store:postgres (database/sql)", viaSQL},
	{"pgbouncer", "store:postgres (pgbouncer)", func(t *testing.T) fleet.Migrator {
		return pgxStore(t, testserver.PgBouncer(t, testserver.Postgres(t)), pgx.QueryExecModeExec)
	}},
	{"sqlite", "store:sqlite", func(t *testing.T) fleet.Migrator {
		s, err := sqliteclaim.Open(t.Context(), t.TempDir()+"/tasks.db", sqliteclaim.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}},
}

func viaMySQL(database func(testing.TB) string, options string) func(t *testing.T) fleet.Migrator {
	return func(t *testing.T) fleet.Migrator {
		dsn := database(t)
		c, err := mysql.ParseDSN(dsn + "?" + options)
		require.NoError(t, err)
		connector, err := mysql.NewConnector(c)
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		db.SetMaxIdleConns(16)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		s, err := mysqlclaim.New(db, mysqlclaim.Options{})
		require.NoError(t, err)
		return s
	}
}

func viaPgx(mode pgx.QueryExecMode) func(t *testing.T) fleet.Migrator {
	return func(t *testing.T) fleet.Migrator { return pgxStore(t, testserver.Postgres(t), mode) }
}

func pgxStore(t *testing.T, url string, mode pgx.QueryExecMode) fleet.Migrator {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = mode
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := pgclaim.New(pool, pgclaim.Options{})
	require.NoError(t, err)
	return s
}

func viaSQL(t *testing.T) fleet.Migrator {
	config, err := pgx.ParseConfig(testserver.Postgres(t))
	require.NoError(t, err)
	db := stdlib.OpenDB(*config)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s, err := pgclaim.NewSQL(db, pgclaim.Options{})
	require.NoError(t, err)
	return s
}

// Sixteen claimers want the same ids at the same time: each id has one winner.
func TestSixteenClaimersOfTheSameIdsHaveOneWinnerEach(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for _, c := range configurations {
		run := func() {
			t.Run(c.name, func(t *testing.T) {
				t.Attr("dueclaim.backend", c.backend)
				s := c.open(t)
				require.NoError(t, s.Migrate(t.Context()))
				race(t, c.name, s)
			})
		}
		if fleet.Stress() {
			run()
		} else { // what takes time is to start servers and to make tables
			all.Go(run)
		}
	}
	all.Wait()
}

const raceBatch = 100

func race(t *testing.T, name string, s core.Store) {
	t.Helper()
	const claimers = 16
	seed, n := seedOf(t), fleet.Rounds(300, 20_000)
	now := core.FloorMilli(time.Now())
	tasks := make([]core.Task, n)
	for i := range tasks {
		tasks[i] = core.Task{ID: core.ID(fmt.Sprintf("race-%d", i)), Kind: "job", Due: now}
	}
	for batch := range slices.Chunk(tasks, 1000) {
		require.NoError(t, s.Insert(t.Context(), core.Call{ID: "insert " + string(batch[0].ID), Now: now}, batch))
	}
	began := time.Now()
	var mu sync.Mutex
	winners, tokens := map[core.ID][]string{}, map[core.ID]int64{}
	failed := 0
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range claimers {
		all.Go(func() {
			// Half of them go by the same order, the others by one of their own.
			order := random(seed, uint64(i/(claimers/2)*i)).Perm(n)
			<-start
			for k, batch := range slices.Collect(slices.Chunk(order, raceBatch)) {
				won, errs := claimAll(t, s, tasks, batch, fmt.Sprintf("claimer-%d-%d", i, k), now)
				mu.Lock()
				failed += errs
				for _, g := range won {
					winners[g.ID] = append(winners[g.ID], g.Holder)
					tokens[g.ID] = g.Token
				}
				mu.Unlock()
			}
		})
	}
	close(start)
	all.Wait()
	took := time.Since(began)
	twice := 0
	for id, who := range winners {
		if len(who) > 1 {
			twice++
			t.Errorf("%s has several winners: %v", id, who)
		}
	}
	assert.Len(t, winners, n, "ids with a winner")
	t.Attr("dueclaim.figure", fmt.Sprintf("claim race, %s: seed %d, %d claimers of %d ids in %.1f s, calls repeated %d, ids with two winners %d",
		name, seed, claimers, n, took.Seconds(), failed, twice))
}

// claimAll claims a batch and repeats the call, as the scheduler does, while its
// outcome is unknown or some row was locked.
func claimAll(t *testing.T, s core.Store, tasks []core.Task, batch []int, holder string, now time.Time) (won []core.Grant, repeats int) {
	ids := make([]core.ID, len(batch))
	for i, k := range batch {
		ids[i] = tasks[k].ID
	}
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		claimed, err := s.Claim(ctx, ids, core.Lease{Holder: holder, Now: now, DueBy: now, Until: now.Add(time.Hour)})
		cancel()
		if err == nil {
			for _, c := range claimed {
				if c.Verdict == core.Granted {
					won = append(won, c.Grant)
				}
			}
			return won, repeats
		}
		if repeats++; repeats > 1000 {
			t.Errorf("claim: repeated %d times: %v", repeats, err)
			return won, repeats
		}
		time.Sleep(time.Duration(repeats) * time.Millisecond)
	}
}

package conformance_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// open opens a handle on certain data.
type open[T any] func(t *testing.T) T

// handles makes parts of one kind: first on fresh data, again a further handle on
// the data of one that it made before.
type handles[T comparable] struct {
	fresh func() open[T]
	mu    sync.Mutex
	more  map[T]open[T]
}

func (h *handles[T]) first(t *testing.T) T {
	again := h.fresh()
	part := again(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more == nil {
		h.more = map[T]open[T]{}
	}
	h.more[part] = again
	return part
}

func (h *handles[T]) again(t *testing.T, first T) T {
	h.mu.Lock()
	again := h.more[first]
	h.mu.Unlock()
	return again(t)
}

// indexes and stores return, for a running server, what makes fresh data on it
// each time that it is called: the next open's handles all work on those.
var indexes = map[string]func(t *testing.T) (fresh func() open[core.TimeIndex]){
	"heap": func(*testing.T) func() open[core.TimeIndex] {
		return func() open[core.TimeIndex] {
			return func(*testing.T) core.TimeIndex { return heapindex.New() } // processes share none
		}
	},
	"redis": func(t *testing.T) func() open[core.TimeIndex] {
		opt, err := redis.ParseURL(testserver.Redis(t))
		require.NoError(t, err)
		return func() open[core.TimeIndex] {
			queue := rand.Text()
			return func(t *testing.T) core.TimeIndex {
				client := redis.NewClient(opt)
				t.Cleanup(func() { _ = client.Close() })
				idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
				require.NoError(t, err)
				return idx
			}
		}
	},
}

var stores = map[string]func(t *testing.T) (fresh func() open[core.Store]){
	"memory": func(*testing.T) func() open[core.Store] {
		return func() open[core.Store] {
			m := claim.NewMemory(claim.MemoryOptions{})
			return func(*testing.T) core.Store { return m }
		}
	},
	"sqlite": func(t *testing.T) func() open[core.Store] {
		path := filepath.Join(t.TempDir(), "tasks.db")
		return queues(func(t *testing.T, queue string) migrated {
			s, err := sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{Queue: queue})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	},
	"mariadb": func(t *testing.T) func() open[core.Store] { return mysqlStore(testserver.MariaDB(t)) },
	"mysql":   func(t *testing.T) func() open[core.Store] { return mysqlStore(testserver.MySQL(t)) },
	"postgres (pgx)": func(t *testing.T) func() open[core.Store] {
		return pgxStore(testserver.Postgres(t))
	},
	"postgres (pgbouncer)": func(t *testing.T) func() open[core.Store] { // in transaction mode
		return pgxStore(testserver.PgBouncer(t, testserver.Postgres(t)))
	},
	"postgres (database/sql)": func(t *testing.T) func() open[core.Store] {
		url := testserver.Postgres(t)
		return queues(func(t *testing.T, queue string) migrated {
			s, err := pgclaim.NewSQL(openDB(t, "pgx", url), pgclaim.Options{Queue: queue})
			require.NoError(t, err)
			return s
		})
	},
}

// migrated is a store that makes its table.
type migrated interface {
	core.Store
	Migrate(context.Context) error
}

// queues has each fresh store be a queue of its own in one table.
func queues(handle func(t *testing.T, queue string) migrated) func() open[core.Store] {
	return func() open[core.Store] {
		queue := rand.Text()
		return func(t *testing.T) core.Store {
			s := handle(t, queue)
			require.NoError(t, s.Migrate(t.Context()))
			return s
		}
	}
}

func mysqlStore(dsn string) func() open[core.Store] {
	return queues(func(t *testing.T, queue string) migrated {
		s, err := mysqlclaim.New(openDB(t, "mysql", dsn), mysqlclaim.Options{Queue: queue})
		require.NoError(t, err)
		return s
	})
}

func pgxStore(url string) func() open[core.Store] {
	return queues(func(t *testing.T, queue string) migrated {
		pool, err := pgxpool.New(context.WithoutCancel(t.Context()), url)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		s, err := pgclaim.New(pool, pgclaim.Options{Queue: queue})
		require.NoError(t, err)
		return s
	})
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Any index works with any store: the main job on every pair.
func TestEveryPairDoesTheMainJob(t *testing.T) {
	t.Parallel()
	for index, newIndex := range indexes {
		for store, newStore := range stores {
			name := index + "+" + store
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Attr("dueclaim.backend", "pair:"+name)
				idx := handles[core.TimeIndex]{fresh: newIndex(t)}
				st := handles[core.Store]{fresh: newStore(t)}
				conformance.TestScheduler(t, conformance.Pair{
					Name: name, Index: idx.first, PeerIndex: idx.again, Store: st.first, PeerStore: st.again,
				})
			})
		}
	}
}

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

// handles makes parts of one kind; again makes a further handle on the data of
// one that it made before.
type handles[T comparable] struct {
	mu   sync.Mutex
	more map[T]func(*testing.T) T
}

func (h *handles[T]) first(t *testing.T, open func(*testing.T) T) T {
	part := open(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more == nil {
		h.more = map[T]func(*testing.T) T{}
	}
	h.more[part] = open
	return part
}

func (h *handles[T]) again(t *testing.T, first T) T {
	h.mu.Lock()
	open := h.more[first]
	h.mu.Unlock()
	return open(t)
}

// indexes and stores return, for a running server, what opens a handle on fresh
// data of its own.
var indexes = map[string]func(t *testing.T) func(t *testing.T) core.TimeIndex{
	"heap": func(*testing.T) func(*testing.T) core.TimeIndex {
		return func(*testing.T) core.TimeIndex { return heapindex.New() } // processes share none
	},
	"redis": func(t *testing.T) func(*testing.T) core.TimeIndex {
		opt, err := redis.ParseURL(testserver.Redis(t))
		require.NoError(t, err)
		queue := rand.Text()
		return func(t *testing.T) core.TimeIndex {
			client := redis.NewClient(opt)
			t.Cleanup(func() { _ = client.Close() })
			idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
			require.NoError(t, err)
			return idx
		}
	},
}

var stores = map[string]func(t *testing.T) func(t *testing.T) core.Store{
	"memory": func(*testing.T) func(*testing.T) core.Store {
		m := claim.NewMemory(claim.MemoryOptions{})
		return func(*testing.T) core.Store { return m }
	},
	"sqlite": func(t *testing.T) func(*testing.T) core.Store {
		path := filepath.Join(t.TempDir(), "tasks.db")
		return func(t *testing.T) core.Store {
			s, err := sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			require.NoError(t, s.Migrate(t.Context()))
			return s
		}
	},
	"mariadb": func(t *testing.T) func(*testing.T) core.Store { return mysqlStore(testserver.MariaDB(t)) },
	"mysql":   func(t *testing.T) func(*testing.T) core.Store { return mysqlStore(testserver.MySQL(t)) },
	"postgres (pgx)": func(t *testing.T) func(*testing.T) core.Store {
		url := testserver.Postgres(t)
		return func(t *testing.T) core.Store {
			pool, err := pgxpool.New(context.WithoutCancel(t.Context()), url)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			s, err := pgclaim.New(pool, pgclaim.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Migrate(t.Context()))
			return s
		}
	},
	"postgres (database/sql)": func(t *testing.T) func(*testing.T) core.Store {
		url := testserver.Postgres(t)
		return func(t *testing.T) core.Store {
			s, err := pgclaim.NewSQL(openDB(t, "pgx", url), pgclaim.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Migrate(t.Context()))
			return s
		}
	},
}

func mysqlStore(dsn string) func(*testing.T) core.Store {
	return func(t *testing.T) core.Store {
		s, err := mysqlclaim.New(openDB(t, "mysql", dsn), mysqlclaim.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		return s
	}
}

func openDB(t *testing.T, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Any index works with any store: the main job on every pair.
func TestEveryPairDoesTheMainJob(t *testing.T) {
	for index, newIndex := range indexes {
		for store, newStore := range stores {
			name := index + "+" + store
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				t.Attr("dueclaim.backend", "pair:"+name)
				var idx handles[core.TimeIndex]
				var st handles[core.Store]
				conformance.TestScheduler(t, conformance.Pair{
					Name:      name,
					Index:     func(t *testing.T) core.TimeIndex { return idx.first(t, newIndex(t)) },
					PeerIndex: idx.again,
					Store:     func(t *testing.T) core.Store { return st.first(t, newStore(t)) },
					PeerStore: st.again,
				})
			})
		}
	}
}

package fleet

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Bench is a pair on which one test works: its place, and this process's own
// handles and producer.
type Bench struct {
	*Parts
	At       Place
	Producer *core.Producer
	Server   *testserver.Server // the private Redis, nil with a heap
}

// NewBench sets a pair up with a database of its own and a Redis of its own, which
// gets further arguments. Without such it keeps nothing on disk.
func NewBench(t *testing.T, p Pair, redisArgs ...string) *Bench {
	t.Helper()
	at := Place{Store: p.Store, DSN: Database(t, p.Store)}
	var private *testserver.Server
	if p.Index == Redis {
		private = testserver.Private(t, server.Redis, server.Options{Args: redisArgs})
		at.Redis = private.URL()
	}
	b := BenchAt(t, at)
	b.Server = private
	return b
}

// Database makes a fresh database for a store and says where it is.
func Database(t *testing.T, store string) (dsn string) {
	t.Helper()
	switch store {
	case SQLite:
		return t.TempDir() + "/tasks.db"
	case MariaDB:
		return testserver.MariaDB(t)
	case MySQL:
		return testserver.MySQL(t)
	case Postgres:
		return testserver.Postgres(t)
	}
	require.FailNow(t, "no such store", store)
	return ""
}

// BenchAt is NewBench on servers that the caller has.
func BenchAt(t *testing.T, at Place) *Bench {
	t.Helper()
	b := &Bench{Parts: Connect(t, at), At: at}
	require.NoError(t, b.Store.Migrate(t.Context()))
	var err error
	b.Producer, err = core.NewProducer(b.Index, b.Store, core.ProducerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// Connect opens what a Place names until the test ends.
func Connect(t *testing.T, at Place) *Parts {
	t.Helper()
	p, err := Open(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Shut()) })
	return p
}

// Tasks are n of a kind, the i-th due at due(i), under the ids prefix-0000 and on.
func Tasks(prefix, kind string, n int, due func(i int) time.Time) []core.Task {
	tasks := make([]core.Task, n)
	for i := range tasks {
		tasks[i] = core.Task{ID: core.ID(fmt.Sprintf("%s-%04d", prefix, i)), Kind: kind, Due: due(i)}
	}
	return tasks
}

// IDs are the ids of tasks, in their order.
func IDs(tasks []core.Task) []core.ID {
	ids := make([]core.ID, len(tasks))
	for i, task := range tasks {
		ids[i] = task.ID
	}
	return ids
}

// Schedule stores Tasks and returns their ids.
func (b *Bench) Schedule(t *testing.T, prefix, kind string, n int, due func(i int) time.Time) []core.ID {
	t.Helper()
	tasks := Tasks(prefix, kind, n, due)
	require.NoError(t, b.Producer.Schedule(t.Context(), tasks...))
	return IDs(tasks)
}

// Has tells whether an id is of those that were scheduled under prefix.
func Has(id core.ID, prefix string) bool { return strings.HasPrefix(string(id), prefix+"-") }

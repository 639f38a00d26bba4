package fleet

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// Bench is a pair on which one test works: its place, and this process's own
// handles and producer.
type Bench struct {
	*Parts
	At       Place
	Producer *core.Producer
	Server   *testserver.Server // the private Redis, nil with a heap
}

// NewBench sets a pair up with a Redis of its own and a database of its own.
func NewBench(t *testing.T, p Pair) *Bench {
	t.Helper()
	at := Place{Store: p.Store}
	switch p.Store {
	case SQLite:
		at.DSN = t.TempDir() + "/tasks.db"
	case MariaDB:
		at.DSN = testserver.MariaDB(t)
	case MySQL:
		at.DSN = testserver.MySQL(t)
	case Postgres:
		at.DSN = testserver.Postgres(t)
	}
	var server *testserver.Server
	if p.Index == Redis {
		server = testserver.PrivateRedis(t)
		at.Redis = server.URL()
	}
	b := BenchAt(t, at)
	b.Server = server
	return b
}

// BenchAt is NewBench on servers that the caller has.
func BenchAt(t *testing.T, at Place) *Bench {
	t.Helper()
	p, err := Open(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Shut()) })
	require.NoError(t, p.Store.Migrate(t.Context()))
	b := &Bench{Parts: p, At: at}
	b.Producer, err = core.NewProducer(p.Index, p.Store, core.ProducerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// Row is what the store's table says about a task, read beside the store.
type Row struct {
	Status            claim.Status
	Token             int64
	Attempts, Crashes int
}

// Rows reads the whole table.
func (b *Bench) Rows(t *testing.T) map[core.ID]Row {
	t.Helper()
	rows, err := b.DB.QueryContext(t.Context(), "SELECT id, status, token, attempts, crashes FROM "+claim.DefaultTable)
	require.NoError(t, err)
	defer rows.Close()
	all := map[core.ID]Row{}
	for rows.Next() {
		var id core.ID
		var r Row
		require.NoError(t, rows.Scan(&id, &r.Status, &r.Token, &r.Attempts, &r.Crashes))
		all[id] = r
	}
	require.NoError(t, rows.Err())
	return all
}

// Schedule stores n tasks of a kind, the i-th due at due(i), under the ids
// prefix-i.
func (b *Bench) Schedule(t *testing.T, prefix, kind string, n int, due func(i int) time.Time) []core.ID {
	t.Helper()
	tasks, ids := make([]core.Task, n), make([]core.ID, n)
	for i := range tasks {
		ids[i] = core.ID(fmt.Sprintf("%s-%d", prefix, i))
		tasks[i] = core.Task{ID: ids[i], Kind: kind, Due: due(i)}
	}
	require.NoError(t, b.Producer.Schedule(t.Context(), tasks...))
	return ids
}

// Has tells whether an id is of those that were scheduled under prefix.
func Has(id core.ID, prefix string) bool { return strings.HasPrefix(string(id), prefix+"-") }

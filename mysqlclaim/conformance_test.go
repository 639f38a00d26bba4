package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// setting is a configuration in which the store goes through the whole suite.
type setting struct {
	name       string
	connection string // as in connections
	options    Options
	variant    bool
	skip       map[string]string
}

// settings cover between them, at little cost, each driver and session option
// that once broke a claim protocol somewhere.
var settings = []setting{
	{name: "defaults"},
	{
		name:       "deletes finished",
		connection: "clientFoundRows=true&interpolateParams=true&parseTime=true&loc=Asia%2FShanghai&isolation=READ-COMMITTED",
		options:    Options{DeleteFinished: true}, variant: true,
	},
	{
		name:       "other zone",
		connection: "clientFoundRows=true&parseTime=true&loc=America%2FNew_York&time_zone=%27%2B05%3A30%27&isolation=REPEATABLE-READ",
		variant:    true,
	},
}

// Each option by itself, and the isolation levels that nobody should need: under
// stress only.
func oneByOne() (list []setting) {
	for _, connection := range []string{
		"clientFoundRows=true", "interpolateParams=true", "parseTime=true&loc=Asia%2FShanghai", "time_zone=%27%2B08%3A00%27",
		"isolation=READ-COMMITTED", "isolation=REPEATABLE-READ", "isolation=SERIALIZABLE",
	} {
		c := setting{name: connection, connection: connection}
		if connection == "isolation=SERIALIZABLE" {
			c.skip = map[string]string{"tx/insert-leaves-live-alone": "at this level every read of a transaction locks"}
		}
		list = append(list, c)
	}
	return list
}

func TestStoreKeepsTheContract(t *testing.T) {
	list := settings
	if os.Getenv("DUECLAIM_STRESS") != "" {
		list = append(list, oneByOne()...)
	}
	onEach(t, func(t *testing.T, b backend) {
		for _, c := range list {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				t.Attr("dueclaim.backend", b.name)
				conforms(t, b, c)
			})
		}
	})
}

// conforms runs the suite on a database of its own: a queue a case.
func conforms(t *testing.T, b backend, c setting) {
	dsn := b.database(t)
	var first line.Line
	dbs := [2]*sql.DB{openBy(t, dsn, b.options(c.connection), &first), open(t, dsn, b.options(c.connection))}
	newStore(t, dbs[0], c.options)
	_, err := dbs[0].ExecContext(t.Context(), "CREATE TABLE effects (queue VARCHAR(20), name VARCHAR(100), PRIMARY KEY (queue, name))")
	require.NoError(t, err)
	var cases atomic.Int64
	handle := func(t *testing.T, db *sql.DB, queue string) core.Store {
		o := c.options
		o.Queue = queue
		s, err := New(db, o)
		require.NoError(t, err)
		return s
	}
	fresh := func(t *testing.T) core.Store { return handle(t, dbs[0], fmt.Sprintf("q%d", cases.Add(1))) }
	conformance.TestStore(t, conformance.Store{
		New:       fresh,
		Neighbour: func(t *testing.T, _ core.Store) core.Store { return fresh(t) },
		Peer: func(t *testing.T, first core.Store) core.Store {
			return handle(t, dbs[1], first.(*Store).queue)
		},
		Lock:  func(t *testing.T, s core.Store, id core.ID) func() { return lockRow(t, s.(*Store), id) },
		Break: func(*testing.T, core.Store) func() { return first.Cut() },
		Hold:  func(t *testing.T, s core.Store) func() { return holdTable(t, s.(*Store)) },
		Idle: func(_ *testing.T, s core.Store) error {
			if n := s.(*Store).db.Stats().InUse; n > 0 {
				return fmt.Errorf("%d connections are in use", n)
			}
			return nil
		},
		Begin: func(t *testing.T, s core.Store) conformance.Tx {
			tx, err := s.(*Store).db.BeginTx(context.WithoutCancel(t.Context()), nil)
			require.NoError(t, err)
			return usersTx{s.(*Store), tx}
		},
		Wrote: func(t *testing.T, s core.Store, key string) bool {
			var n int
			count := new(text).sql("SELECT COUNT(*) FROM effects WHERE queue = ").val(s.(*Store).queue).sql(" AND name = ").val(key)
			require.NoError(t, s.(*Store).db.QueryRowContext(t.Context(), count.String()).Scan(&n))
			return n == 1
		},
		Variant: c.variant,
		Skip:    c.skip,
		Provides: conformance.StoreProvides{
			TimeSource: true, Purger: true, KeepsFinished: !c.options.DeleteFinished,
		},
	})
}

// holdTable takes the lock of the whole table, as a backup or an ALTER does.
func holdTable(t *testing.T, s *Store) (release func()) {
	ctx := context.WithoutCancel(t.Context())
	conn, err := s.db.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "LOCK TABLES "+s.quoted+" WRITE")
	require.NoError(t, err)
	return func() {
		_, err := conn.ExecContext(ctx, "UNLOCK TABLES")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

// usersTx is a user's transaction with the store's methods for it.
type usersTx struct {
	s  *Store
	tx *sql.Tx
}

func (u usersTx) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return u.s.InsertTx(ctx, u.tx, call, tasks)
}

func (u usersTx) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return u.s.SettleTx(ctx, u.tx, now, settlements)
}

func (u usersTx) Write(ctx context.Context, key string) error {
	var n int
	read := new(text).sql("SELECT COUNT(*) FROM effects WHERE queue = ").val(u.s.queue)
	if err := u.tx.QueryRowContext(ctx, read.String()).Scan(&n); err != nil {
		return err
	}
	insert := new(text).sql("INSERT INTO effects VALUES (").val(u.s.queue).sql(", ").val(key).sql(")")
	_, err := u.tx.ExecContext(ctx, insert.String())
	return err
}

func (u usersTx) Commit(context.Context) error { return u.tx.Commit() }

func (u usersTx) Rollback() { _ = u.tx.Rollback() }

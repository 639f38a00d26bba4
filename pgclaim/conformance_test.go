package pgclaim

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// Every mode runs the store's statements the same way but for how values travel:
// as binary, as text, or inside the statement's text.
func TestStoreKeepsTheContract(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		t.Parallel()
		testContract(t, testserver.Postgres(t), contract{driver: d, variant: !d.native})
	})
}

func TestStoreThatDeletesFinishedKeepsTheContract(t *testing.T) {
	for _, d := range []driver{{native: true, mode: pgx.QueryExecModeSimpleProtocol}, {mode: pgx.QueryExecModeExec}} {
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			t.Parallel()
			testContract(t, testserver.Postgres(t), contract{driver: d, options: Options{Table: "public.jobs", DeleteFinished: true}, variant: true})
		})
	}
}

// contract is a way in which the store goes through the suite.
type contract struct {
	driver  driver
	options Options
	variant bool
	// pooled: there is a pgbouncer before the server. Its version 1.18 can't be cut
	// off: the cancel request that pgx sends for a broken connection now and then
	// ends another client's connection ("successfully sent cancel request"), or the
	// pooler itself.
	pooled bool
}

// testContract gives each case a queue of its own in one table.
func testContract(t *testing.T, url string, c contract) {
	d, o := c.driver, c.options
	var queues atomic.Int64
	var by line.Line
	first := d.openBy(t, url, o, &by)
	require.NoError(t, first.Migrate(t.Context()))
	first.exec(t, "CREATE TABLE effects (queue text, name text, PRIMARY KEY (queue, name))")
	withQueue := func(t *testing.T, s *Store, queue string) *Store {
		o := o
		o.Queue = queue
		var err error
		if s.pool != nil {
			s, err = New(s.pool, o)
		} else {
			s, err = NewSQL(s.db, o)
		}
		require.NoError(t, err)
		return s
	}
	cut := func(t *testing.T, _ core.Store) func() {
		// Each broken connection that idles in the pool would cost a later case an error.
		t.Cleanup(func() {
			if first.pool != nil {
				first.pool.Reset()
			}
		})
		return by.Cut()
	}
	if c.pooled {
		cut = nil
	}
	fresh := func(t *testing.T) core.Store {
		return withQueue(t, first, fmt.Sprintf("queue %d", queues.Add(1)))
	}
	conformance.TestStore(t, conformance.Store{
		New:       fresh,
		Neighbour: func(t *testing.T, _ core.Store) core.Store { return fresh(t) },
		Peer: func(t *testing.T, s core.Store) core.Store {
			return withQueue(t, d.open(t, url, o), s.(*Store).queue)
		},
		Lock: func(t *testing.T, s core.Store, id core.ID) func() {
			tx := s.(*Store).begin(t, context.WithoutCancel(t.Context()))
			require.NoError(t, tx.exec(t.Context(), "SELECT 1 FROM "+first.quoted()+" WHERE queue = $1::text AND id = $2::text FOR UPDATE", s.(*Store).queue, string(id)))
			return tx.rollback
		},
		Break: cut,
		Hold: func(t *testing.T, s core.Store) func() {
			tx := s.(*Store).begin(t, context.WithoutCancel(t.Context()))
			require.NoError(t, tx.exec(t.Context(), "LOCK TABLE "+first.quoted()+" IN ACCESS EXCLUSIVE MODE"))
			return tx.rollback
		},
		Idle: func(_ *testing.T, s core.Store) error {
			n := 0
			if own := s.(*Store); own.pool != nil {
				n = int(own.pool.Stat().AcquiredConns())
			} else {
				n = own.db.Stats().InUse
			}
			if n > 0 {
				return fmt.Errorf("%d connections are in use", n)
			}
			return nil
		},
		Begin: func(t *testing.T, s core.Store) conformance.Tx {
			return contractTx{s.(*Store).begin(t, context.WithoutCancel(t.Context()))}
		},
		Wrote: func(t *testing.T, s core.Store, key string) bool {
			return len(s.(*Store).text(t, "SELECT name FROM effects WHERE queue = $1::text AND name = $2::text", s.(*Store).queue, key)) == 1
		},
		Variant:  c.variant,
		Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !o.DeleteFinished},
	})
}

// contractTx is a user's transaction as the suite takes it.
type contractTx struct{ *userTx }

func (u contractTx) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return u.insert(ctx, call, tasks...)
}

func (u contractTx) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return u.settle(ctx, now, settlements...)
}

func (u contractTx) Write(ctx context.Context, key string) error {
	if err := u.exec(ctx, "SELECT 1 FROM effects WHERE queue = $1::text", u.s.queue); err != nil {
		return err
	}
	return u.exec(ctx, "INSERT INTO effects VALUES ($1::text, $2::text)", u.s.queue, key)
}

func (u contractTx) Commit(ctx context.Context) error { return u.commit(ctx) }

func (u contractTx) Rollback() { u.rollback() }

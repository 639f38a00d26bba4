package pgclaim

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// Every mode runs the store's statements the same way but for how values travel:
// as binary, as text, or inside the statement's text.
func TestStoreKeepsTheContract(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		testContract(t, testserver.Postgres(t), d, Options{})
	})
}

func TestStoreThatDeletesFinishedKeepsTheContract(t *testing.T) {
	for _, d := range []driver{{native: true, mode: pgx.QueryExecModeSimpleProtocol}, {mode: pgx.QueryExecModeExec}} {
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			testContract(t, testserver.Postgres(t), d, Options{Table: "public.jobs", DeleteFinished: true})
		})
	}
}

// testContract gives each case a queue of its own in one table.
func testContract(t *testing.T, url string, d driver, o Options) {
	var queues atomic.Int64
	first := d.open(t, url, o)
	require.NoError(t, first.Migrate(t.Context()))
	withQueue := func(t *testing.T, s *Store, queue string) *Store {
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
	conformance.TestStore(t, conformance.Store{
		New: func(t *testing.T) core.Store {
			return withQueue(t, first, fmt.Sprintf("queue %d", queues.Add(1)))
		},
		Peer: func(t *testing.T, s core.Store) core.Store {
			return withQueue(t, d.open(t, url, o), s.(*Store).queue)
		},
		Lock: func(t *testing.T, s core.Store, id core.ID) func() {
			tx := s.(*Store).begin(t, context.WithoutCancel(t.Context()))
			require.NoError(t, tx.exec(t.Context(), "SELECT 1 FROM "+first.quoted()+" WHERE id = $1::text FOR UPDATE", string(id)))
			return tx.rollback
		},
		Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !o.DeleteFinished},
	})
}

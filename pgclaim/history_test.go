package pgclaim

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// histories gives each history a queue of its own, and its peers another pool.
func histories(t *testing.T, d driver, url string, o Options) conformance.Store {
	first, peer := d.open(t, url, o), d.open(t, url, o)
	require.NoError(t, first.Migrate(t.Context()))
	var queues atomic.Int64
	handle := func(t *testing.T, on *Store, queue string) core.Store {
		o := o
		o.Queue = queue
		s, err := NewSQL(on.db, o)
		if on.pool != nil {
			s, err = New(on.pool, o)
		}
		require.NoError(t, err)
		return s
	}
	return conformance.Store{
		New:      func(t *testing.T) core.Store { return handle(t, first, fmt.Sprintf("queue %d", queues.Add(1))) },
		Peer:     func(t *testing.T, s core.Store) core.Store { return handle(t, peer, s.(*Store).queue) },
		Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !o.DeleteFinished},
	}
}

// Each driver with one of the options, and with both where there is time.
func TestRandomHistories(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		for _, deletes := range []bool{false, true} {
			if deletes == d.native && !stress() {
				continue
			}
			t.Run(map[bool]string{false: "defaults", true: "deletes finished"}[deletes], func(t *testing.T) {
				store := histories(t, d, testserver.Postgres(t), Options{DeleteFinished: deletes})
				history.TestStore(t, store, history.Options{})
				history.TestLinearizable(t, store, history.Options{})
			})
		}
	})
}

func TestRandomHistoriesBehindATransactionPooler(t *testing.T) {
	t.Attr("dueclaim.backend", pooled)
	store := histories(t, native, testserver.PgBouncer(t, testserver.Postgres(t)), Options{})
	if stress() {
		history.TestStore(t, store, history.Options{})
	}
	history.TestLinearizable(t, store, history.Options{})
}

package mysqlclaim

import (
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
)

// histories gives each history a queue of its own, and its peers another pool.
func histories(t *testing.T, b backend, options string, o Options) conformance.Store {
	dsn := b.database(t)
	dbs := [2]*sql.DB{open(t, dsn, options), open(t, dsn, options)}
	newStore(t, dbs[0], o)
	var queues atomic.Int64
	handle := func(t *testing.T, db *sql.DB, queue string) core.Store {
		o := o
		o.Queue = queue
		s, err := New(db, o)
		require.NoError(t, err)
		return s
	}
	return conformance.Store{
		New:      func(t *testing.T) core.Store { return handle(t, dbs[0], fmt.Sprintf("q%d", queues.Add(1))) },
		Peer:     func(t *testing.T, first core.Store) core.Store { return handle(t, dbs[1], first.(*Store).queue) },
		Provides: conformance.StoreProvides{TimeSource: true, Purger: true, KeepsFinished: !o.DeleteFinished},
	}
}

// Each server with one of the options, and with both where there is time.
func TestRandomHistories(t *testing.T) {
	stress := os.Getenv("DUECLAIM_STRESS") != ""
	onEach(t, func(t *testing.T, b backend) {
		for _, c := range []struct {
			name, options string
			deletes       bool
		}{
			{name: "defaults", options: "interpolateParams=true"},
			{name: "deletes finished", options: "clientFoundRows=true", deletes: true},
		} {
			if c.deletes == (b.name == "store:mariadb") && !stress {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				store := histories(t, b, c.options, Options{DeleteFinished: c.deletes})
				history.TestStore(t, store, history.Options{})
				history.TestLinearizable(t, store, history.Options{ReadsBack: true})
			})
		}
	})
}

package mysqlclaim

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// conforms runs the suite on a database of its own: a queue a case.
func conforms(t *testing.T, b backend, options string, o Options) {
	dsn := b.database(t)
	dbs := [2]*sql.DB{open(t, dsn, options), open(t, dsn, options)}
	newStore(t, dbs[0], o)
	var cases atomic.Int64
	handle := func(t *testing.T, db *sql.DB, queue string) core.Store {
		o := o
		o.Queue = queue
		s, err := New(db, o)
		require.NoError(t, err)
		return s
	}
	conformance.TestStore(t, conformance.Store{
		New: func(t *testing.T) core.Store { return handle(t, dbs[0], fmt.Sprintf("q%d", cases.Add(1))) },
		Peer: func(t *testing.T, first core.Store) core.Store {
			return handle(t, dbs[1], first.(*Store).queue)
		},
		Lock: func(t *testing.T, s core.Store, id core.ID) func() { return lockRow(t, s.(*Store), id) },
		Provides: conformance.StoreProvides{
			TimeSource: true, Purger: true, KeepsFinished: !o.DeleteFinished,
		},
	})
}

func TestStoreKeepsTheContract(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		t.Run("defaults", func(t *testing.T) { conforms(t, b, "", Options{}) })
		t.Run("deletes finished", func(t *testing.T) {
			conforms(t, b, "clientFoundRows=true&interpolateParams=true&parseTime=true&loc=Asia%2FShanghai", Options{DeleteFinished: true})
		})
	})
}

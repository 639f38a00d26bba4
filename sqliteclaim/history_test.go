package sqliteclaim_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dueclaim/dueclaim/conformance"
	random "github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// histories gives each history a queue of its own in one file, and its peers
// connections of their own.
func histories(t *testing.T, options sqliteclaim.Options) conformance.Store {
	path := file(t)
	var queues atomic.Int64
	var mu sync.Mutex
	queueOf := map[core.Store]string{}
	return conformance.Store{
		New: func(t *testing.T) core.Store {
			o := options
			o.Queue = fmt.Sprint("queue ", queues.Add(1))
			s := open(t, path, o)
			mu.Lock()
			defer mu.Unlock()
			queueOf[s] = o.Queue
			return s
		},
		Peer: func(t *testing.T, first core.Store) core.Store {
			mu.Lock()
			defer mu.Unlock()
			o := options
			o.Queue = queueOf[first]
			return open(t, path, o)
		},
		Provides: conformance.StoreProvides{Purger: true, KeepsFinished: !options.DeleteFinished},
	}
}

// concurrent is how many concurrent histories to play: each write waits for all
// others and for the disk, so that one takes a second on a busy machine.
func concurrent() int {
	if os.Getenv("DUECLAIM_STRESS") != "" {
		return 0 // the default
	}
	return 5
}

func TestRandomHistories(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	t.Run("defaults", func(t *testing.T) {
		store := histories(t, sqliteclaim.Options{})
		random.TestStore(t, store, random.Options{})
		random.TestLinearizable(t, store, random.Options{Histories: concurrent()})
	})
	t.Run("deletes finished", func(t *testing.T) {
		store := histories(t, sqliteclaim.Options{DeleteFinished: true})
		random.TestStore(t, store, random.Options{})
		random.TestLinearizable(t, store, random.Options{Histories: concurrent()})
	})
}

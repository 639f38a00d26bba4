package redisindex_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
	"github.com/dueclaim/dueclaim/redisindex"
)

// histories plays random histories, each on a queue of its own.
func histories(t *testing.T, client redis.UniversalClient) {
	var mu sync.Mutex
	queues := map[core.TimeIndex]string{}
	handle := func(t *testing.T, queue string) core.TimeIndex {
		idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		queues[idx] = queue
		return idx
	}
	queueOf := func(idx core.TimeIndex) string {
		mu.Lock()
		defer mu.Unlock()
		return queues[idx]
	}
	history.TestIndex(t, conformance.Index{
		New:      func(t *testing.T) core.TimeIndex { return handle(t, rand.Text()) },
		Peer:     func(t *testing.T, first core.TimeIndex) core.TimeIndex { return handle(t, queueOf(first)) },
		Provides: conformance.IndexProvides{Taker: true, Restorer: true, Lister: true},
	}, history.Options{})
}

func TestRandomHistories(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) { histories(t, client) })
	t.Run("cluster", func(t *testing.T) {
		t.Attr("dueclaim.backend", "index:redis cluster")
		histories(t, dialCluster(t, cluster(t), new(line.Line)))
	})
	t.Run("valkey", func(t *testing.T) {
		t.Attr("dueclaim.backend", "index:valkey")
		histories(t, dial(t, testserver.Valkey(t)))
	})
}

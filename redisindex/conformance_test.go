package redisindex_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
	"github.com/dueclaim/dueclaim/redisindex"
)

func TestConformanceOnADouble(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis double")
	conform(t, func(t *testing.T, l *line.Line) redis.UniversalClient {
		return dialBy(t, "redis://"+miniredis.RunT(t).Addr(), l)
	}, nil)
}

// Peers have a client of their own, as another process has.
func TestConformance(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	open := func(t *testing.T, l *line.Line) redis.UniversalClient { return dialBy(t, testserver.Redis(t), l) }
	conform(t, open, open)
}

func TestConformanceOnTheOldProtocol(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	open := func(t *testing.T, l *line.Line) redis.UniversalClient {
		return dialBy(t, testserver.Redis(t)+"?protocol=2", l)
	}
	conform(t, open, open)
}

// conform runs the suite; without peer, peers share the client.
func conform(t *testing.T, open, peer func(t *testing.T, l *line.Line) redis.UniversalClient) {
	t.Helper()
	type handle struct {
		queue  string
		client redis.UniversalClient
		line   *line.Line
	}
	var mu sync.Mutex
	handles := map[core.TimeIndex]handle{}
	conformance.TestIndex(t, conformance.Index{
		New: func(t *testing.T) core.TimeIndex {
			h := handle{queue: rand.Text(), line: new(line.Line)}
			h.client = open(t, h.line)
			idx, err := redisindex.New(h.client, redisindex.Options{Queue: h.queue})
			require.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			handles[idx] = h
			return idx
		},
		Peer: func(t *testing.T, first core.TimeIndex) core.TimeIndex {
			mu.Lock()
			h := handles[first]
			mu.Unlock()
			if peer != nil {
				h.client = peer(t, new(line.Line))
			}
			idx, err := redisindex.New(h.client, redisindex.Options{Queue: h.queue})
			require.NoError(t, err)
			return idx
		},
		Neighbour: func(t *testing.T, first core.TimeIndex) core.TimeIndex {
			mu.Lock()
			h := handles[first]
			mu.Unlock()
			idx, err := redisindex.New(h.client, redisindex.Options{Queue: rand.Text()})
			require.NoError(t, err)
			return idx
		},
		Break: func(_ *testing.T, idx core.TimeIndex) func() {
			mu.Lock()
			defer mu.Unlock()
			return handles[idx].line.Cut()
		},
		Hold: func(_ *testing.T, idx core.TimeIndex) func() {
			mu.Lock()
			defer mu.Unlock()
			return handles[idx].line.Hold()
		},
		Lose: func(t *testing.T, idx core.TimeIndex) {
			mu.Lock()
			h := handles[idx]
			mu.Unlock()
			require.NoError(t, h.client.Del(t.Context(), "dueclaim:{"+h.queue+"}:due").Err())
		},
		Provides: conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true, Detector: true, Lister: true},
	})
}

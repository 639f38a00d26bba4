package redisindex_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
	"github.com/dueclaim/dueclaim/redisindex"
)

var base = time.UnixMilli(1_900_000_000_000).UTC()

func at(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }

func entry(id string, ms int) core.Entry { return core.Entry{ID: core.ID(id), Due: at(ms)} }

// dial opens a client of its own on a redis:// URL, as another process would.
func dial(t *testing.T, url string) *redis.Client {
	t.Helper()
	return dialBy(t, url, new(line.Line))
}

// dialBy is dial by a line that may be cut.
func dialBy(t *testing.T, url string, l *line.Line) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	o.Dialer, o.DialerRetries = l.Dial, 1 // the client's five cost half a second of a cut line
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// double is a client of an in-memory stand-in for Redis.
func double(t *testing.T) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	return dial(t, "redis://"+server.Addr()), server
}

// newIndex is an index with a queue of its own.
func newIndex(t *testing.T, client redis.UniversalClient) *redisindex.Index {
	t.Helper()
	idx, _ := newIndexJunk(t, client, nil)
	return idx
}

// newIndexJunk also returns the key of the sorted set.
func newIndexJunk(t *testing.T, client redis.UniversalClient, onJunk func(string, float64)) (*redisindex.Index, string) {
	t.Helper()
	queue := rand.Text()
	idx, err := redisindex.New(client, redisindex.Options{Queue: queue, OnJunk: onJunk})
	require.NoError(t, err)
	return idx, "dueclaim:{" + queue + "}:due"
}

// onEach runs a test on the stand-in and on a real server.
func onEach(t *testing.T, run func(t *testing.T, client *redis.Client)) {
	t.Run("double", func(t *testing.T) {
		t.Attr("dueclaim.backend", "index:redis double")
		client, _ := double(t)
		run(t, client)
	})
	t.Run("redis", func(t *testing.T) {
		t.Attr("dueclaim.backend", "index:redis")
		run(t, dial(t, testserver.Redis(t)))
	})
}

func all(t *testing.T, idx core.TimeIndex) []core.Entry {
	t.Helper()
	entries, err := idx.Due(context.WithoutCancel(t.Context()), time.UnixMilli(253402300799999), 100_000)
	require.NoError(t, err)
	return entries
}

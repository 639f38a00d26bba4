package redisindex_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/redisindex"
)

func generation(t *testing.T, idx *redisindex.Index) string {
	t.Helper()
	name, err := idx.Generation(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, name)
	return name
}

func TestTheGenerationStaysWhileEntriesComeAndGo(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx := newIndex(t, client)
		name := generation(t, idx)
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1), entry("b", 2)}))
		assert.Equal(t, name, generation(t, idx), "the first entries")
		_, _, err := idx.Take(t.Context(), at(1), at(1000), 1)
		require.NoError(t, err)
		require.NoError(t, idx.Remove(t.Context(), []core.Entry{entry("b", 2)}))
		assert.Equal(t, name, generation(t, idx))
	})
}

func TestTheGenerationIsAnotherWhenTheSortedSetIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx, key := newIndexJunk(t, client, nil)
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
		first := generation(t, idx)
		require.NoError(t, client.Del(t.Context(), key).Err())
		second := generation(t, idx)
		assert.NotEqual(t, first, second)
		assert.Equal(t, second, generation(t, idx), "once")
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
		assert.Equal(t, second, generation(t, idx), "filling it again is no loss")
	})
}

func TestTheGenerationStaysWhenTheLastEntryIsRemoved(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		for _, n := range []int{1, 1000} { // in one script, in a pipeline
			idx, key := newIndexJunk(t, client, nil)
			var entries []core.Entry
			for i := range n {
				entries = append(entries, entry(strconv.Itoa(i), i))
			}
			name := generation(t, idx)
			for range 3 {
				require.NoError(t, idx.Add(t.Context(), entries))
				assert.Equal(t, name, generation(t, idx))
				require.NoError(t, idx.Remove(t.Context(), entries))
				assert.Equal(t, name, generation(t, idx), "a queue at night is no loss after loss")
			}
			require.NoError(t, idx.Add(t.Context(), entries))
			assert.Equal(t, name, generation(t, idx))
			require.NoError(t, client.Del(t.Context(), key).Err())
			assert.NotEqual(t, name, generation(t, idx), "a real one is told all the same")
		}
	})
}

func TestTheGenerationIsThatOfTheServerThatHasTheSet(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	shards := map[string]string{}
	for i, url := range []string{testserver.PrivateRedis(t).URL(), testserver.Redis(t)} {
		o, err := redis.ParseURL(url)
		require.NoError(t, err)
		shards[strconv.Itoa(i)] = o.Addr
	}
	client := redis.NewRing(&redis.RingOptions{Addrs: shards}) // sends what has no key anywhere
	t.Cleanup(func() { _ = client.Close() })
	idx := newIndex(t, client)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
	name := generation(t, idx)
	assert.Regexp(t, "^[^ ]+ [0-9a-f]+$", name, "with the server's start")
	for range 20 {
		require.Equal(t, name, generation(t, idx))
	}
}

func TestTheGenerationIsAnotherAfterAFlush(t *testing.T) {
	srv := testserver.PrivateRedis(t)
	client := dial(t, srv.URL())
	idx := newIndex(t, client)
	first := generation(t, idx)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	assert.NotEqual(t, first, generation(t, idx), "also of one that was empty")
}

func TestTheGenerationIsAnotherAfterARestartThatKeptTheData(t *testing.T) {
	srv := testserver.Private(t, server.Redis, server.Options{Durable: true})
	client := dial(t, srv.URL())
	idx := newIndex(t, client)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
	first := generation(t, idx)
	srv.Restart()
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 10*time.Second, 10*time.Millisecond)
	second := generation(t, idx)
	assert.NotEqual(t, first, second, "the last writes may be missing")
	life, _, _ := strings.Cut(first, " ")
	assert.True(t, strings.HasPrefix(second, life+" "), "got %q after %q: the key is the same, the start another", second, first)
	assert.Len(t, all(t, idx), 1)
}

func TestTheGenerationOfAServerThatIsGoneIsAnError(t *testing.T) {
	client, srv := double(t)
	idx := newIndex(t, client)
	srv.Close()
	name, err := idx.Generation(t.Context())
	require.Error(t, err)
	assert.Empty(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = idx.CheckSetup(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAPolicyThatMayEvictTheIndexIsAWarning(t *testing.T) {
	srv := testserver.PrivateRedis(t)
	client := dial(t, srv.URL())
	idx := newIndex(t, client)
	for policy, warned := range map[string]bool{
		"noeviction": false, "volatile-lru": false, "volatile-ttl": false,
		"allkeys-lru": true, "allkeys-random": true, "allkeys-lfu": true,
	} {
		require.NoError(t, client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
		warnings, err := idx.CheckSetup(t.Context())
		require.NoError(t, err)
		if !warned {
			assert.Empty(t, warnings, policy)
			continue
		}
		require.Len(t, warnings, 1, policy)
		assert.Contains(t, warnings[0], policy)
		assert.Contains(t, warnings[0], "noeviction")
	}
}

func TestAServerThatDoesntTellItsPolicyIsAWarning(t *testing.T) {
	client, _ := double(t)
	warnings, err := newIndex(t, client).CheckSetup(t.Context())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "doesn't tell")
}

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// masters are two Redis servers, one of which the workers' address leads to.
type masters struct {
	forwarder *forwarder
	servers   [2]*testserver.Server
	admin     [2]*redis.Client
	now       int // which of them is it
	lost      int // entries, by promotions
}

func newMasters(t *testing.T) *masters {
	t.Helper()
	m := &masters{}
	for i := range m.servers {
		m.servers[i] = testserver.PrivateRedis(t)
		m.admin[i] = redis.NewClient(&redis.Options{Addr: m.servers[i].Addr(), ClientName: "chaos", MaxRetries: 5})
		t.Cleanup(func() { _ = m.admin[i].Close() })
	}
	m.forwarder = forward(t, m.servers[0].Addr())
	return m
}

// entries is how many the index has, -1 while it doesn't say.
func (m *masters) entries() int {
	n, err := m.admin[m.now].ZCard(context.Background(), fleet.DueKey).Result()
	if err != nil {
		return -1
	}
	return int(n)
}

func (m *masters) restart(t *testing.T) int {
	m.servers[m.now].Kill()
	time.Sleep(300 * time.Millisecond)
	m.servers[m.now].Restart()
	return 1
}

func (m *masters) flush(t *testing.T) int {
	require.NoError(t, m.admin[m.now].FlushAll(t.Context()).Err())
	return 1
}

func (m *masters) pause(*testing.T) int {
	m.servers[m.now].Stop()
	time.Sleep(1500 * time.Millisecond) // longer than an index call may take
	m.servers[m.now].Cont()
	return 1
}

// evict makes the memory short until all keys were evicted, ours among them.
func (m *masters) evict(t *testing.T) int {
	r, ctx := m.admin[m.now], t.Context()
	require.True(t, fleet.Poll(20*time.Second, func() bool { return m.entries() > 0 }), "the index is filled")
	for i := range 64 {
		require.NoError(t, r.Set(ctx, fmt.Sprint("filler:", i), strings.Repeat("x", 32<<10), 0).Err())
	}
	before := m.info(t, "stats", "evicted_keys")
	require.NoError(t, r.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "1000000").Err()) // less than the server itself takes
	require.True(t, fleet.Poll(10*time.Second, func() bool {
		return r.Exists(ctx, fleet.DueKey).Val() == 0 && m.info(t, "stats", "evicted_keys") > before
	}), "the key is evicted")
	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "0").Err())
	return 1
}

// outOfMemory refuses all writes for a while.
func (m *masters) outOfMemory(t *testing.T) int {
	r, ctx := m.admin[m.now], t.Context()
	before := m.info(t, "errorstats", "errorstat_OOM:count")
	require.NoError(t, r.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "1000000").Err())
	time.Sleep(time.Second)
	require.True(t, fleet.Poll(20*time.Second, func() bool { return m.info(t, "errorstats", "errorstat_OOM:count") > before }), "a write was refused")
	require.NoError(t, r.ConfigSet(ctx, "maxmemory", "0").Err())
	return 1
}

// info is one number of INFO; 0 where it isn't there.
func (m *masters) info(t *testing.T, section, name string) (n int) {
	text, err := m.admin[m.now].Info(t.Context(), section).Result()
	require.NoError(t, err)
	for line := range strings.SplitSeq(text, "\r\n") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, err := fmt.Sscanf(strings.TrimLeft(rest, ":="), "%d", &n)
			require.NoError(t, err, line)
		}
	}
	return n
}

// promote makes the other server a replica, cuts its link, and makes it the master
// after a while: what was written meanwhile is lost.
func (m *masters) promote(t *testing.T) int {
	ctx, old, next := t.Context(), m.admin[m.now], m.admin[1-m.now]
	host, port, _ := strings.Cut(m.servers[m.now].Addr(), ":")
	require.NoError(t, next.ReplicaOf(ctx, host, port).Err())
	require.True(t, fleet.Poll(20*time.Second, func() bool {
		text, err := next.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(text, "master_link_status:up")
	}), "the replica is in step")
	require.NoError(t, next.ReplicaOf(ctx, "NO", "ONE").Err())
	time.Sleep(500 * time.Millisecond)
	m.forwarder.change(m.servers[1-m.now].Addr())
	had, err := old.ZRange(ctx, fleet.DueKey, 0, -1).Result()
	require.NoError(t, err)
	if len(had) > 0 {
		has, err := next.ZMScore(ctx, fleet.DueKey, had...).Result()
		require.NoError(t, err)
		for _, score := range has {
			if score == 0 {
				m.lost++
			}
		}
	}
	m.now = 1 - m.now
	return 1
}

func (m *masters) forgetScripts(t *testing.T) int {
	require.NoError(t, m.admin[m.now].ScriptFlush(t.Context()).Err())
	return 1
}

// killClient breaks one connection that is not ours.
func (m *masters) killClient(t *testing.T, rng *rand.Rand) int {
	r, ctx := m.admin[m.now], t.Context()
	var ids []string
	require.True(t, fleet.Poll(20*time.Second, func() bool {
		ids = nil
		for line := range strings.SplitSeq(r.ClientList(ctx).Val(), "\n") {
			if id, rest, ok := strings.Cut(strings.TrimPrefix(line, "id="), " "); ok && !strings.Contains(rest, " name=chaos ") && !strings.Contains(rest, " flags=S ") {
				ids = append(ids, id)
			}
		}
		return len(ids) > 0
	}), "somebody is connected")
	err := r.ClientKillByFilter(ctx, "ID", ids[rng.IntN(len(ids))]).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		require.NoError(t, err)
	}
	return 1
}

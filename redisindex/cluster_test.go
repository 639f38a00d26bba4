package redisindex_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/redisindex"
)

// clusterNode starts a server that may become a part of a cluster. bus is the port by
// which the others meet it.
func clusterNode(t *testing.T) (node *testserver.Server, bus string) {
	t.Helper()
	bus = freePort(t) // the default, the port plus 10000, can be out of range
	return testserver.Private(t, server.Redis, server.Options{Args: []string{
		"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000",
	}}), bus
}

// cluster starts three masters and returns their addresses.
func cluster(t *testing.T) []string {
	t.Helper()
	addrs, _, _ := masters(t)
	return addrs
}

func masters(t *testing.T) (addrs, buses []string, nodes []*testserver.Server) {
	t.Helper()
	const masters, slots = 3, 16384
	for range masters {
		node, bus := clusterNode(t)
		addrs, buses, nodes = append(addrs, node.Addr()), append(buses, bus), append(nodes, node)
	}
	for i, addr := range addrs {
		node := dial(t, "redis://"+addr)
		from, to := i*slots/masters, (i+1)*slots/masters-1
		require.NoError(t, node.ClusterAddSlotsRange(t.Context(), from, to).Err())
		host, port, err := net.SplitHostPort(addrs[0])
		require.NoError(t, err)
		require.NoError(t, node.Do(t.Context(), "CLUSTER", "MEET", host, port, buses[0]).Err())
	}
	for _, addr := range addrs {
		node := dial(t, "redis://"+addr)
		require.Eventually(t, func() bool {
			info, err := node.ClusterInfo(t.Context()).Result()
			known, knownErr := node.ClusterNodes(t.Context()).Result()
			return err == nil && knownErr == nil && containsAll(info, "cluster_state:ok", "cluster_known_nodes:3") && containsAll(known, addrs...)
		}, 30*time.Second, 20*time.Millisecond, "the cluster stands")
	}
	return addrs, buses, nodes
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func dialCluster(t *testing.T, addrs []string, l *line.Line) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: l.Dial, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestConformanceOnACluster(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis cluster")
	addrs := cluster(t)
	open := func(t *testing.T, l *line.Line) redis.UniversalClient { return dialCluster(t, addrs, l) }
	conform(t, open, open)
}

// Queues spread over the masters, each with all its keys on one; wake-ups reach
// a watcher whichever node it is connected to; junk moves within the slot.
func TestQueuesOnEveryMasterOfACluster(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis cluster")
	addrs := cluster(t)
	client := dialCluster(t, addrs, new(line.Line))
	used := map[string]bool{}
	for i := 0; len(used) < len(addrs) || i < 5; i++ {
		require.Less(t, i, 100, "queues fell on %d masters only", len(used))
		queue := fmt.Sprintf("{queue} %d", i)
		reported := ""
		idx, err := redisindex.New(client, redisindex.Options{Queue: queue, OnJunk: func(member string, _ float64) { reported = member }})
		require.NoError(t, err)
		key := fmt.Sprintf("dueclaim:{%%7Bqueue%%7D%%20%d}:due", i)
		node, err := client.MasterForKey(t.Context(), key)
		require.NoError(t, err)
		used[node.Options().Addr] = true

		w := watch(t, idx)
		require.NoError(t, client.ZAdd(t.Context(), key, redis.Z{Score: -5, Member: "bad"}).Err())
		entries := make([]core.Entry, 1000)
		moves := make([]core.Move, len(entries))
		for j := range entries {
			entries[j] = entry(fmt.Sprintf("id-%04d", j), j)
			moves[j] = core.Move{ID: entries[j].ID, From: at(j), To: at(j - 10)}
		}
		require.NoError(t, idx.Add(t.Context(), entries))
		w.reaches(t, 2, "the wake-up")
		require.NoError(t, idx.Move(t.Context(), moves))
		w.reaches(t, 3, "the move's wake-up")
		ids, next, err := idx.Take(t.Context(), at(899), at(5000), 2000)
		require.NoError(t, err)
		assert.Equal(t, 910, len(ids))
		assert.Equal(t, at(900), next)
		assert.Equal(t, "bad", reported)
		gone := make([]core.Entry, len(ids))
		for j, id := range ids {
			gone[j] = core.Entry{ID: id, Due: at(5000)}
		}
		require.NoError(t, idx.Remove(t.Context(), gone))
		assert.Equal(t, 90, len(all(t, idx)))
		w.cancel()
		require.NoError(t, w.ends(t))
	}
}

// A slot that moves to another master answers MOVED, and ASK while it moves: the
// client follows, also for a Take, which it must not repeat otherwise.
func TestAQueueWhoseSlotMovesIsFollowed(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis cluster")
	addrs := cluster(t)
	client := dialCluster(t, addrs, new(line.Line))
	queue := rand.Text()
	idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
	require.NoError(t, err)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1), entry("b", 2)}))
	key := "dueclaim:{" + queue + "}:due"
	slot := int(client.ClusterKeySlot(t.Context(), key).Val())
	old, err := client.MasterForKey(t.Context(), key)
	require.NoError(t, err)
	target := addrs[0]
	if old.Options().Addr == target {
		target = addrs[1]
	}
	from, to := dial(t, "redis://"+old.Options().Addr), dial(t, "redis://"+target)
	fromID, toID := nodeID(t, from), nodeID(t, to)
	do := func(node *redis.Client, args ...any) {
		require.NoError(t, node.Do(t.Context(), args...).Err(), "%v", args)
	}
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	host, port, err := net.SplitHostPort(target)
	require.NoError(t, err)
	do(from, "MIGRATE", host, port, key, 0, 5000)
	ids, _, err := idx.Take(t.Context(), at(1), at(50), 10) // ASK
	require.NoError(t, err)
	assert.Equal(t, []core.ID{"a"}, ids)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("c", 3)}))
	for _, node := range []*redis.Client{to, from} {
		do(node, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
	ids, _, err = idx.Take(t.Context(), at(2), at(50), 10) // MOVED
	require.NoError(t, err)
	assert.Equal(t, []core.ID{"b"}, ids)
	assert.Equal(t, []core.Entry{entry("c", 3), entry("a", 50), entry("b", 50)}, all(t, idx))
}

// go-redis by itself goes on for up to a minute with a master that is dead.
func TestAClusterClientFindsThePromotedReplicaSoon(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis cluster")
	addrs, buses, nodes := masters(t)
	client := dialCluster(t, addrs, new(line.Line))
	queue := rand.Text()
	idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
	require.NoError(t, err)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
	master, err := client.MasterForKey(t.Context(), "dueclaim:{"+queue+"}:due")
	require.NoError(t, err)

	place := slices.Index(addrs, master.Options().Addr)
	replica, _ := clusterNode(t)
	host, port, err := net.SplitHostPort(addrs[place])
	require.NoError(t, err)
	standby := dial(t, "redis://"+replica.Addr())
	id := nodeID(t, dial(t, "redis://"+addrs[place]))
	require.NoError(t, standby.Do(t.Context(), "CLUSTER", "MEET", host, port, buses[place]).Err())
	require.Eventually(t, func() bool {
		return standby.Do(context.WithoutCancel(t.Context()), "CLUSTER", "REPLICATE", id).Err() == nil
	}, 30*time.Second, 50*time.Millisecond, "it knows the master")
	require.Eventually(t, func() bool {
		info, err := standby.Info(context.WithoutCancel(t.Context()), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, 30*time.Second, 50*time.Millisecond, "the replica follows")
	nodes[place].Kill()
	promoted := time.Time{}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		if promoted.IsZero() {
			if role, err := standby.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "master" {
				promoted = time.Now()
			}
		}
		_, _, err := idx.Take(ctx, at(0), at(50), 10)
		return err == nil
	}, 90*time.Second, 50*time.Millisecond, "the index works again")
	assert.Less(t, time.Since(promoted), 5*time.Second, "after the replica was promoted")
	assert.Equal(t, []core.Entry{entry("a", 1)}, all(t, idx))
}

func nodeID(t *testing.T, node *redis.Client) string {
	t.Helper()
	id, err := node.Do(context.WithoutCancel(t.Context()), "CLUSTER", "MYID").Text()
	require.NoError(t, err)
	return id
}

package testserver

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// clusterSlots is how many hash slots every Redis Cluster has.
const clusterSlots = 16384

// RedisCluster starts a Redis Cluster of three nodes without replicas for this
// test alone and returns their addresses.
func RedisCluster(t testing.TB) []string {
	t.Helper()
	const nodes = 3
	var addrs []string
	var clients []*redis.Client
	for range nodes {
		s := Private(t, server.Redis, server.Options{Args: []string{"--cluster-enabled", "yes"}})
		client := redis.NewClient(&redis.Options{Addr: s.Addr()})
		defer client.Close()
		addrs, clients = append(addrs, s.Addr()), append(clients, client)
	}
	ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
	defer cancel()
	if err := formCluster(ctx, clients, addrs[0]); err != nil {
		t.Fatalf("redis cluster: %v", err)
	}
	for !clusterWhole(ctx, clients) {
		if ctx.Err() != nil {
			t.Fatalf("redis cluster: not whole after %v", setupTimeout)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return addrs
}

// formCluster deals out the slots and introduces the nodes to the first one.
func formCluster(ctx context.Context, clients []*redis.Client, first string) error {
	host, port, err := net.SplitHostPort(first)
	if err != nil {
		return err
	}
	for i, client := range clients {
		from, to := i*clusterSlots/len(clients), (i+1)*clusterSlots/len(clients)-1
		if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			return fmt.Errorf("give slots %d to %d: %w", from, to, err)
		}
		if err := client.ClusterMeet(ctx, host, port).Err(); i > 0 && err != nil {
			return fmt.Errorf("meet: %w", err)
		}
	}
	return nil
}

// clusterWhole says whether every node knows all nodes and finds all slots served.
func clusterWhole(ctx context.Context, clients []*redis.Client) bool {
	for _, client := range clients {
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil || !strings.Contains(info, "cluster_state:ok") ||
			!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(clients))) {
			return false
		}
	}
	return true
}

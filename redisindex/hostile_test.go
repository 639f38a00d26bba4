package redisindex_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/redisindex"
)

// hostile is what somebody who may write into the set can put there.
type hostile struct {
	client      *redis.Client
	key         string
	small       int // members of each cheap kind
	huge        int // members of a MiB each
	otherQueues []core.ID
}

// write writes all kinds, and returns how many members.
func (h hostile) write(t *testing.T) (members int) {
	t.Helper()
	now := float64(time.Now().UnixMilli())
	var batch []redis.Z
	put := func(score float64, member string) {
		batch = append(batch, redis.Z{Score: score, Member: member})
		members++
		if len(batch) == 5000 || len(member) > 1<<10 {
			require.NoError(t, h.client.ZAdd(t.Context(), h.key, batch...).Err())
			batch = nil
		}
	}
	for i := range h.small {
		put(now-1e6, fmt.Sprintf("orphan-%d", i))              // a valid id that no row has
		put(now-1e6, fmt.Sprintf("no id \x00 %d", i))          // no valid id, before all
		put(now+3.6e6, fmt.Sprintf(" later, no id %d", i))     // and after
		put(-float64(i)-0.5, fmt.Sprintf("before 1970 %d", i)) // scores of no time
		put(253402300800000+float64(i), fmt.Sprintf("after 9999 %d", i))
		put(now-float64(i)/3, fmt.Sprintf("fraction-%d", i))
	}
	for i, id := range h.otherQueues {
		put(now-1e6+float64(i), string(id))
	}
	for i, member := range []string{
		"'; DROP TABLE dueclaim_tasks; --", "1 OR 1=1", "' UNION SELECT payload FROM dueclaim_tasks --", `\'; --`, "$1", "%s%n", "a' OR 'a'='a",
		"redis.call('FLUSHALL')", "../../etc/passwd", "<script>", "\x1b[2J", "line\nlevel=ERROR msg=forged", strings.Repeat("x", 255), strings.Repeat("x", 256),
	} {
		put(now-1e6-float64(i), member)
	}
	put(math.Inf(-1), "minus infinity")
	put(math.Inf(1), "infinity")
	for i := range h.huge {
		put(now-2e6, fmt.Sprintf("%d%s", i, strings.Repeat("huge", 1<<18)))
	}
	if len(batch) > 0 {
		require.NoError(t, h.client.ZAdd(t.Context(), h.key, batch...).Err())
	}
	return members
}

// TestAHostileSetHarmsNobody: a scheduler on a set full of junk of every kind goes
// on with its own tasks on time, runs none of the junk and none of another queue's
// tasks, says so in few and short lines, and the junk is gone in the end.
func TestAHostileSetHarmsNobody(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	h := hostile{client: dial(t, testserver.PrivateRedis(t).URL()), small: 2_000, huge: 8}
	if os.Getenv("DUECLAIM_STRESS") != "" {
		h.small, h.huge = 100_000/6+1, 64
	}
	queue := rand.Text()
	h.key = "dueclaim:{" + queue + "}:due"
	var junk atomic.Int64
	idx, err := redisindex.New(h.client, redisindex.Options{Queue: queue, OnJunk: func(string, float64) { junk.Add(1) }})
	require.NoError(t, err)
	store, other := claim.NewMemory(claim.MemoryOptions{}), claim.NewMemory(claim.MemoryOptions{})
	otherIdx, err := redisindex.New(h.client, redisindex.Options{Queue: queue + "2"})
	require.NoError(t, err)
	neighbour, err := core.NewProducer(otherIdx, other, core.ProducerOptions{})
	require.NoError(t, err)
	for i := range 50 { // another queue's, not due
		id := core.ID(fmt.Sprintf("neighbour-%d", i))
		h.otherQueues = append(h.otherQueues, id)
		require.NoError(t, neighbour.Schedule(t.Context(), core.Task{ID: id, Due: time.Now().Add(time.Hour)}))
	}
	members := h.write(t)

	var mu sync.Mutex
	late := map[core.ID]time.Duration{}
	handler := core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		mu.Lock()
		defer mu.Unlock()
		if _, twice := late[job.Task.ID]; twice || !strings.HasPrefix(string(job.Task.ID), "live-") {
			t.Errorf("ran %q", job.Task.ID)
		}
		late[job.Task.ID] = job.Lateness()
		return nil
	})
	log := &counted{most: 4 << 10}
	scheduler, err := core.New(idx, store, handler, core.Options{Slots: 500, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- scheduler.Run(ctx) }()
	producer, err := core.NewProducer(idx, store, core.ProducerOptions{})
	require.NoError(t, err)
	const live = 100
	for i := range live {
		require.NoError(t, producer.Schedule(ctx, core.Task{ID: core.ID(fmt.Sprintf("live-%d", i)), Due: time.Now().Add(time.Duration(i) * 10 * time.Millisecond)}))
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(late) == live
	}, 20*time.Second, 20*time.Millisecond, "all live tasks run")
	require.Eventually(t, func() bool { // what has an impossible score is in nobody's way, and goes later
		n, err := h.client.ZCount(ctx, h.key, "0", fmt.Sprint(time.Now().UnixMilli())).Result()
		require.NoError(t, err)
		return n == 0
	}, 3*time.Minute, 50*time.Millisecond, "junk that is due goes")
	cancel()
	require.NoError(t, <-ended)

	worst := time.Duration(0)
	for _, l := range late {
		worst = max(worst, l)
	}
	assert.Less(t, worst, 5*time.Second, "live tasks start in spite of it")
	left, err := other.Waiting(t.Context(), time.Now(), core.Entry{}, time.Now().Add(2*time.Hour), 100)
	require.NoError(t, err)
	assert.Len(t, left, len(h.otherQueues), "the other queue's are as they were")
	kept, err := h.client.ZCard(t.Context(), strings.TrimSuffix(h.key, "due")+"junk").Result()
	require.NoError(t, err)
	assert.LessOrEqual(t, kept, int64(1000), "what is kept of it is bounded")
	big, err := h.client.MemoryUsage(t.Context(), strings.TrimSuffix(h.key, "due")+"junk").Result()
	require.NoError(t, err)
	assert.Less(t, big, int64(8<<20), "in bytes too")
	log.check(t)
	t.Attr("dueclaim.figure", fmt.Sprintf("hostile members in Redis: %d written (%d of a MiB), %d set aside, %d of %d live tasks run, the latest %v late, 0 others",
		members, h.huge, junk.Load(), len(late), live, worst.Round(time.Millisecond)))
}

// TestAKeyOfAnotherTypeIsSaidAndTasksRunFromTheStore: somebody put a string where
// the set belongs.
func TestAKeyOfAnotherTypeIsSaidAndTasksRunFromTheStore(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	client := dial(t, testserver.Redis(t))
	idx, key := newIndexJunk(t, client, nil)
	require.NoError(t, client.Set(t.Context(), key, "a string", 0).Err())
	t.Cleanup(func() { _ = client.Del(context.WithoutCancel(t.Context()), key).Err() })
	store := claim.NewMemory(claim.MemoryOptions{})
	var ran atomic.Int64
	handler := core.HandlerFunc(func(context.Context, *core.Job) error { ran.Add(1); return nil })
	scheduler, err := core.New(idx, store, handler, core.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- scheduler.Run(ctx) }()
	require.NoError(t, store.Insert(ctx, core.Call{ID: "c", Now: time.Now()}, []core.Task{{ID: "a", Due: time.Now()}, {ID: "b", Due: time.Now()}}))
	require.Eventually(t, func() bool { return ran.Load() == 2 }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return !scheduler.Health().Index.OK }, 10*time.Second, 20*time.Millisecond)
	assert.ErrorContains(t, scheduler.Health().Index.Err, "is not a sorted set")
	cancel()
	require.NoError(t, <-ended)
}

// counted is a log that must have few lines, and none of more than most bytes.
type counted struct {
	mu           sync.Mutex
	lines, most  int
	longest, bad string
}

func (c *counted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	if len(p) > len(c.longest) {
		c.longest = string(p[:min(len(p), c.most+1)])
	}
	if strings.Contains(strings.TrimSuffix(string(p), "\n"), "\n") || strings.HasPrefix(string(p), "level=") || strings.Contains(string(p), "\x1b") {
		c.bad = string(p[:min(len(p), c.most)])
	}
	return len(p), nil
}

func (c *counted) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Empty(t, c.bad, "a member has written a line of its own")
	assert.LessOrEqual(t, len(c.longest), c.most)
	assert.Less(t, c.lines, 1000)
	t.Logf("%d lines of log", c.lines)
}

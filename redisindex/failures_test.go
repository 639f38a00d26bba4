package redisindex_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
	"github.com/dueclaim/dueclaim/redisindex"
)

// eachCall runs every method once, with a batch of several scripts for those
// that take one.
func eachCall(ctx context.Context, idx *redisindex.Index, batch int) map[string]error {
	entries := make([]core.Entry, batch)
	moves := make([]core.Move, batch)
	for i := range entries {
		entries[i] = entry(fmt.Sprint("id-", i), i)
		moves[i] = core.Move{ID: entries[i].ID, From: at(i), To: at(i + 1)}
	}
	_, dueErr := idx.Due(ctx, at(10), 5)
	_, _, takeErr := idx.Take(ctx, at(10), at(1000), 5)
	return map[string]error{
		"add": idx.Add(ctx, entries), "add missing": idx.AddMissing(ctx, entries), "move": idx.Move(ctx, moves), "remove": idx.Remove(ctx, entries),
		"due": dueErr, "take": takeErr,
	}
}

func TestAServerThatRefusesIsAnErrorNeverNothingDue(t *testing.T) {
	double := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: double.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	idx := newIndex(t, client)
	for _, answer := range []string{
		"READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 1234 127.0.0.1:1",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"OOM command not allowed when used memory > 'maxmemory'.",
		"NOAUTH Authentication required.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOREPLICAS Not enough good replicas to write.",
		"NOSCRIPT No matching script. Please use EVAL.",
		"MISCONF Redis is configured to save RDB snapshots",
	} {
		double.SetError(answer)
		for _, batch := range []int{1, 600} {
			for call, err := range eachCall(t.Context(), idx, batch) {
				require.Error(t, err, "%s: %s", call, answer)
				assert.True(t, strings.HasPrefix(err.Error(), "redisindex: "+call+": "), "%q", err)
				assert.Equal(t, 1, strings.Count(err.Error(), "redisindex"), "wrapped once: %q", err)
				var refusal redis.Error
				assert.ErrorAs(t, err, &refusal, "the driver's error is reachable")
			}
		}
	}
	double.SetError("")
	for call, err := range eachCall(t.Context(), idx, 600) {
		require.NoError(t, err, "%s after the server is well again", call)
	}
}

// A client that a failover left on the old master, now a replica, must not go on
// as if nothing were due.
func TestWritesOnAReplicaAreErrors(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	master := testserver.PrivateRedis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	replica := testserver.Private(t, server.Redis, server.Options{Args: []string{"--replicaof", host + " " + port}})
	client := redis.NewClient(&redis.Options{Addr: replica.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	onMaster, onReplica := newIndexOn(t, dial(t, master.URL()), "q"), newIndexOn(t, client, "q")
	require.NoError(t, onMaster.Add(t.Context(), []core.Entry{entry("a", 1)}))
	require.Eventually(t, func() bool {
		due, err := onReplica.Due(t.Context(), at(1), 1)
		return err == nil && len(due) == 1
	}, 20*time.Second, 20*time.Millisecond, "the replica has the entry")
	_, _, err = onReplica.Take(t.Context(), at(1), at(9), 1)
	require.ErrorContains(t, err, "READONLY")
	require.ErrorContains(t, onReplica.Add(t.Context(), []core.Entry{entry("b", 1)}), "READONLY")
	require.ErrorContains(t, onReplica.AddMissing(t.Context(), []core.Entry{entry("b", 1)}), "READONLY")
	require.ErrorContains(t, onReplica.Move(t.Context(), []core.Move{{ID: "a", From: at(1), To: at(2)}}), "READONLY")
	require.ErrorContains(t, onReplica.Remove(t.Context(), []core.Entry{entry("a", 1)}), "READONLY")
}

func TestAKeyOfAnotherTypeIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx, key := newIndexJunk(t, client, nil)
		require.NoError(t, client.Set(t.Context(), key, "mine", 0).Err())
		for _, batch := range []int{1, 600} {
			for call, err := range eachCall(t.Context(), idx, batch) {
				require.ErrorContains(t, err, fmt.Sprintf("redisindex: %s: key %q is not a sorted set", call, key))
				assert.ErrorContains(t, err, "WRONGTYPE")
			}
		}
		value, err := client.Get(t.Context(), key).Result()
		require.NoError(t, err)
		assert.Equal(t, "mine", value, "it is left alone")
	})
}

func TestAServerThatForgotTheScriptsIsTaughtThemAgain(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	client := dial(t, testserver.PrivateRedis(t).URL())
	idx := newIndex(t, client)
	for _, batch := range []int{1, 600, 5000} {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		for call, err := range eachCall(t.Context(), idx, batch) {
			require.NoError(t, err, "%s of %d", call, batch)
		}
	}
	entries := make([]core.Entry, 3000)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("id-%06d", i), i)
	}
	idx = newIndex(t, client)
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	require.NoError(t, idx.Add(t.Context(), entries))
	assert.True(t, slices.Equal(entries, all(t, idx)), "every entry is there")

	// And again while calls are under way.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, client.ScriptFlush(t.Context()).Err())
			}
		}
	})
	moves := make([]core.Move, len(entries))
	for i, e := range entries {
		moves[i] = core.Move{ID: e.ID, From: e.Due, To: at(i + 50_000)}
	}
	for range 20 {
		require.NoError(t, idx.Add(t.Context(), entries))
		_, _, err := idx.Take(t.Context(), at(-1), at(0), 1)
		require.NoError(t, err)
		require.NoError(t, idx.Move(t.Context(), moves))
	}
	close(stop)
	wg.Wait()
	assert.Equal(t, len(entries), len(all(t, idx)))
}

func TestAFlushedServerIsAnEmptyIndexThatWorks(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	client := dial(t, testserver.PrivateRedis(t).URL())
	idx := newIndex(t, client)
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1), entry("b", 2)}))
	require.NoError(t, client.FlushAll(t.Context()).Err())
	ids, next, err := idx.Take(t.Context(), at(10), at(20), 5)
	require.NoError(t, err)
	assert.Empty(t, ids)
	assert.True(t, next.IsZero())
	require.NoError(t, idx.Move(t.Context(), []core.Move{{ID: "a", From: at(1), To: at(2)}}))
	require.NoError(t, idx.Remove(t.Context(), []core.Entry{entry("b", 2)}))
	assert.Empty(t, all(t, idx), "what is gone stays gone until it is added")
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
	assert.Equal(t, []core.Entry{entry("a", 1)}, all(t, idx))
}

// A server that doesn't answer (here: stopped; elsewhere: cut off) doesn't hold
// up a call for longer than its ctx allows, whatever the client's options say,
// whether a deadline ends it or a cancellation.
func TestACallReturnsSoonAfterItsContextWhenTheServerIsStopped(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	for _, enabled := range []bool{false, true} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: enabled})
		t.Cleanup(func() { _ = client.Close() })
		idx := newIndex(t, client)
		for _, err := range eachCall(t.Context(), idx, 600) {
			require.NoError(t, err)
		}
		server.Stop()
		for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if errors.Is(end, context.Canceled) {
				var cancelNow context.CancelFunc
				ctx, cancelNow = context.WithCancel(t.Context())
				time.AfterFunc(200*time.Millisecond, cancelNow)
			}
			began := time.Now()
			for call, err := range eachCall(ctx, idx, 600) {
				assert.ErrorIs(t, err, end, "%s with ContextTimeoutEnabled %t", call, enabled)
			}
			assert.Less(t, time.Since(began), 2*time.Second, "with ContextTimeoutEnabled %t; go-redis's own limit is 5 s for each attempt", enabled)
			cancel()
		}
		server.Cont()
		assert.Eventually(t, func() bool {
			for _, err := range eachCall(t.Context(), idx, 600) {
				if err != nil {
					return false
				}
			}
			return true
		}, 10*time.Second, 20*time.Millisecond, "it works again when the server does")
	}
}

func TestAnErrorNamesTheAddressAndNoPassword(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	const password = "s3cret-Passw0rd"
	client := redis.NewClient(&redis.Options{Addr: addr, Username: "someone", Password: password, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	idx := newIndex(t, client)
	errs := eachCall(t.Context(), idx, 1)
	errs["watch"] = idx.Watch(t.Context(), func() {})
	for call, err := range errs {
		require.ErrorContains(t, err, addr, "%s", call)
		assert.NotContains(t, err.Error(), password)
		var refused *net.OpError
		assert.ErrorAs(t, err, &refused)
	}

	t.Attr("dueclaim.backend", "index:redis")
	live := testserver.PrivateRedis(t)
	wrong := redis.NewClient(&redis.Options{Addr: live.Addr(), Username: "someone", Password: password, MaxRetries: -1})
	t.Cleanup(func() { _ = wrong.Close() })
	idx = newIndex(t, wrong)
	errs = eachCall(t.Context(), idx, 1)
	errs["watch"] = idx.Watch(t.Context(), func() {})
	for call, err := range errs {
		require.ErrorContains(t, err, "WRONGPASS", "%s", call)
		assert.NotContains(t, err.Error(), password)
	}
}

// go-redis sends a command again after a lost connection, up to three times. A
// Take repeated that way would move further ids to until for nobody.
func TestTakeIsSentOnceWhenItsReplyIsLost(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	direct := newIndexOn(t, dial(t, server.URL()), "lossy")
	entries := make([]core.Entry, 100)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("id-%03d", i), i)
	}
	require.NoError(t, direct.Add(t.Context(), entries))
	// The scripts must be known, so that each attempt is one command.
	_, _, err := direct.Take(t.Context(), at(-10), at(1000), 1)
	require.NoError(t, err)

	lossy := newLossyProxy(t, server.Addr())
	idx := newIndexOn(t, dial(t, "redis://"+lossy.addr), "lossy")
	_, err = idx.Due(t.Context(), at(0), 1) // connects
	require.NoError(t, err)
	lossy.loseAReply()
	_, _, err = idx.Take(t.Context(), at(1000), at(5000), 10)
	require.Error(t, err)
	moved := 0
	for _, e := range all(t, direct) {
		if e.Due.Equal(at(5000)) {
			moved++
		}
	}
	assert.Equal(t, 10, moved, "ids at until after one Take of 10")
	lossy.loseAReply()
	require.NoError(t, idx.Remove(t.Context(), entries[50:]), "the client may repeat what is idempotent")
	assert.Equal(t, 50, len(all(t, direct)))
}

func newIndexOn(t *testing.T, client redis.UniversalClient, queue string) *redisindex.Index {
	t.Helper()
	idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
	require.NoError(t, err)
	return idx
}

// lossyProxy passes bytes on; after loseAReply it closes the connection instead
// of passing the next reply on.
type lossyProxy struct {
	addr   string
	mu     sync.Mutex
	losing bool
}

func newLossyProxy(t *testing.T, upstream string) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{addr: listener.Addr().String()}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
			wg.Go(func() { p.pass(client, server, false) })
			wg.Go(func() { p.pass(server, client, true) })
		}
	})
	return p
}

func (p *lossyProxy) loseAReply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = true
}

func (p *lossyProxy) pass(from, to net.Conn, replies bool) {
	defer func() { _ = from.Close(); _ = to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		lose := p.losing && replies
		if lose {
			p.losing = false
		}
		p.mu.Unlock()
		if lose {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

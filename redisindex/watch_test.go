package redisindex_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

type watcher struct {
	wakes  atomic.Int64
	cancel context.CancelFunc
	ended  chan error
}

// watch runs a Watch and waits until it listens: it notifies once then.
func watch(t *testing.T, idx core.Watcher) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{cancel: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- idx.Watch(ctx, func() { w.wakes.Add(1) }) }()
	w.reaches(t, 1, "the subscription stands")
	t.Cleanup(cancel)
	return w
}

func (w *watcher) reaches(t *testing.T, want int64, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return w.wakes.Load() >= want }, 10*time.Second, time.Millisecond, why)
}

// ends waits for the return.
func (w *watcher) ends(t *testing.T) error {
	t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("Watch didn't return")
		return nil
	}
}

func TestOnlyAnEarlierHeadIsPublished(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx := newIndex(t, client)
		w := watch(t, idx)
		ctx := t.Context()
		want := int64(1)
		add := func(id string, ms int) error { return idx.Add(ctx, []core.Entry{entry(id, ms)}) }
		steps := []struct {
			why  string
			wake int64
			err  error
		}{
			{"the first entry", 1, add("a", 100)},
			{"a later one", 0, add("b", 200)},
			{"one at the same time", 0, add("c", 100)},
			{"an earlier one", 1, add("d", 50)},
			{"the same again", 0, add("d", 50)},
			{"the same, later", 0, add("d", 60)},
			{"an entry made earlier than the head", 1, add("b", 40)},
			{"the head moved to later", 0, idx.Move(ctx, []core.Move{{ID: "b", From: at(40), To: at(300)}})},
			{"another moved to the head", 1, idx.Move(ctx, []core.Move{{ID: "a", From: at(100), To: at(10)}})},
			{"the head moved to earlier", 1, idx.Move(ctx, []core.Move{{ID: "a", From: at(10), To: at(5)}})},
			{"a move that doesn't apply", 0, idx.Move(ctx, []core.Move{{ID: "c", From: at(1), To: at(0)}})},
			{"earlier, but behind the head", 0, idx.Move(ctx, []core.Move{{ID: "b", From: at(300), To: at(299)}})},
			{"one that is there, restored earlier", 0, idx.AddMissing(ctx, []core.Entry{entry("c", 1), entry("e", 500)})},
			{"a missing one before all others", 1, idx.AddMissing(ctx, []core.Entry{entry("f", 400), entry("g", 3), entry("a", 1)})},
			{"and again", 0, idx.AddMissing(ctx, []core.Entry{entry("g", 2)})},
			{"a remove", 0, idx.Remove(ctx, []core.Entry{entry("a", 5)})},
		}
		for _, s := range steps {
			require.NoError(t, s.err, s.why)
			want += s.wake
		}
		// A message of our own comes after all of those before it.
		require.NoError(t, add("last", -1))
		w.reaches(t, want+1, "all are heard")
		assert.Equal(t, want+1, w.wakes.Load(), "and no more")
		w.cancel()
		require.NoError(t, w.ends(t))
	})
}

func TestALargeAddWakesOnceForEachEarlierScriptAtMost(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx := newIndex(t, client)
		w := watch(t, idx)
		entries := make([]core.Entry, 2000)
		for i := range entries {
			entries[i] = entry(fmt.Sprint("id-", i), i)
		}
		require.NoError(t, idx.Add(t.Context(), entries))
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("last", -1)}))
		w.reaches(t, 3, "the start, the batch, the last")
		assert.EqualValues(t, 3, w.wakes.Load())
	})
}

func TestWatchHearsAgainAfterTheServerWasRestarted(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	url := server.URL()
	idx := newIndex(t, dial(t, url))
	ctx := t.Context()
	w := watch(t, idx)
	server.Restart()
	select { // either the client came through, or Watch returned and core calls it again
	case err := <-w.ended:
		require.ErrorContains(t, err, "redisindex: watch: ")
		w = watch(t, idx)
	case <-time.After(200 * time.Millisecond):
		w.reaches(t, 2, "once after the reconnect: messages may have been missed")
	}
	before := w.wakes.Load()
	require.Eventually(t, func() bool { return idx.Add(ctx, []core.Entry{entry("a", 1)}) == nil }, 10*time.Second, 10*time.Millisecond)
	w.reaches(t, before+1, "a new head after the restart")
}

func TestWatchReturnsAnErrorWhenTheServerIsGone(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	idx := newIndex(t, dial(t, server.URL()))
	w := watch(t, idx)
	server.Kill()
	require.ErrorContains(t, w.ends(t), "redisindex: watch: ")
}

func TestWatchLeavesNothingBehind(t *testing.T) {
	url := testserver.Redis(t)
	client := dial(t, url)
	require.NoError(t, client.Ping(t.Context()).Err())
	quiet := goleak.IgnoreCurrent()
	idx, key := newIndexJunk(t, client, nil)
	for range 10 {
		w := watch(t, idx)
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 1)}))
		w.cancel()
		require.NoError(t, w.ends(t))
	}
	goleak.VerifyNone(t, quiet)
	channel := strings.TrimSuffix(key, "due") + "wake"
	require.Eventually(t, func() bool {
		n, err := client.PubSubNumSub(t.Context(), channel).Result()
		return err == nil && n[channel] == 0
	}, 5*time.Second, 5*time.Millisecond, "no subscription is left")
}

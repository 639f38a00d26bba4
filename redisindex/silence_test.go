package redisindex

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

func watching(t *testing.T, server *testserver.Server, silence time.Duration) (context.CancelFunc, chan error) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	idx, err := New(client, Options{Queue: rand.Text()})
	require.NoError(t, err)
	idx.silence = silence
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	listens, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- idx.Watch(ctx, func() { listens <- struct{}{} }) }()
	<-listens
	return cancel, ended
}

// A connection that is dead without a sign (a cable, a firewall, a stopped
// server) is noticed.
func TestWatchNoticesAServerThatFellSilent(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	_, ended := watching(t, server, 100*time.Millisecond)
	select {
	case err := <-ended:
		t.Fatalf("Watch returned on a server that is merely quiet: %v", err)
	case <-time.After(500 * time.Millisecond): // five times the silence: PINGs are answered
	}
	server.Stop()
	defer server.Cont()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errSilent)
	case <-time.After(10 * time.Second):
		t.Fatal("Watch didn't notice")
	}
}

func TestWatchEndsWithItsContextWhileTheServerIsStopped(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	server := testserver.PrivateRedis(t)
	cancel, ended := watching(t, server, time.Hour) // it reads until the next message
	server.Stop()
	defer server.Cont()
	began := time.Now()
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("Watch didn't end")
	}
	assert.Less(t, time.Since(began), time.Second)
}

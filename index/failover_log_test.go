package index_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/index"
)

// Who reads that the index answers again takes the outage for over, and whose probe
// reads Health sees none.
func TestASwitchToTheBackupIsNotLoggedAsTheEndOfTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newRemote()
		idx, err := index.Failover(primary, heapindex.New())
		require.NoError(t, err)
		var log safeLog
		s, err := core.New(idx, claim.NewMemory(claim.MemoryOptions{}), &core.Mux{},
			core.Options{Poll: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		done := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- s.Run(ctx) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		log.reset()

		primary.state.Store(gone)
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			assert.NotContains(t, log.String(), "answers again")
		}
		assert.ErrorIs(t, s.Health().Index.Err, index.ErrOnBackup)
		assert.Equal(t, 1, strings.Count(log.String(), "index failing"), "%s", log.String())

		primary.state.Store(well)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.True(t, s.Health().Index.OK)
		assert.Equal(t, 1, strings.Count(log.String(), "answers again"), "%s", log.String())

		stop()
		require.NoError(t, <-done)
	})
}

// safeLog is what was logged.
type safeLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *safeLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}

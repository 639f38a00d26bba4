package core_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Else the task would wait for a lease's end, and count a crash.
func TestShutdownFindsOutAboutAClaimWhoseReplyWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		var n atomic.Int32
		store.set(func(op string, call func() error) error {
			err := call()
			if op == "claim" && n.Add(1) == 1 {
				time.Sleep(time.Second)
				return errAway
			}
			return err
		})
		stop := running(t, newScheduler(t, p.idx, store, &recorder{}, core.Options{}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, stop())
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.Pending, row.Status)
		assert.Equal(t, 0, row.Attempts)
	})
}

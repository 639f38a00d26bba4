package claim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// plainLock has no TryLock.
type plainLock struct{ mu sync.Mutex }

func (l *plainLock) Lock()   { l.mu.Lock() }
func (l *plainLock) Unlock() { l.mu.Unlock() }

func TestALockIsGivenUpWithItsContextAndLetGoWhenItComes(t *testing.T) {
	for name, l := range map[string]sync.Locker{"a mutex": &sync.Mutex{}, "any other": &plainLock{}} {
		t.Run(name, func(t *testing.T) {
			called := 0
			do := func() error { called++; return errors.New("done") }
			require.EqualError(t, claim.WithLock(t.Context(), l, do), "done")
			l.Lock()
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, claim.WithLock(ctx, l, do), context.DeadlineExceeded)
			require.ErrorIs(t, claim.WithLock(ctx, l, do), context.DeadlineExceeded, "a ctx that is done already")
			waiting := make(chan error, 1)
			go func() { waiting <- claim.WithLock(context.Background(), l, do) }()
			l.Unlock()
			require.EqualError(t, <-waiting, "done")
			l.Lock() // nobody has it
			assert.Equal(t, 2, called)
			l.Unlock()
		})
	}
}

func TestFailedItemsOfChunksHaveTheirPlacesInTheWholeBatch(t *testing.T) {
	items := []core.ID{"a", "b", "c", "d", "e"}
	fails := func(run []core.ID) error {
		var failed []core.ItemError
		for i, id := range run {
			if id == "b" || id == "e" {
				failed = append(failed, core.ItemError{Index: i, ID: id, Err: core.ErrBusy})
			}
		}
		return core.NewBatchError(failed)
	}
	err := claim.InChunks(items, 2, 0, nil, fails)
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	assert.Equal(t, []core.ItemError{{Index: 1, ID: "b", Err: core.ErrBusy}, {Index: 4, ID: "e", Err: core.ErrBusy}}, batch.Items)
	require.NoError(t, claim.InChunks(nil, 2, 0, nil, fails))

	notDone := func(from core.ID) func(run []core.ID) error {
		return func(run []core.ID) error {
			if run[0] == from {
				return errors.Join(core.ErrNotDone, &net.OpError{Op: "dial", Err: io.EOF})
			}
			return nil
		}
	}
	require.ErrorIs(t, claim.InChunks(items, 2, 0, nil, notDone("a")), core.ErrNotDone, "nothing of it took effect")
	err = claim.InChunks(items, 2, 0, nil, notDone("c"))
	require.ErrorContains(t, err, "after 2 of 5 items")
	require.NotErrorIs(t, err, core.ErrNotDone, "two items took effect")
	require.ErrorIs(t, err, io.EOF)
	err = claim.InChunks(items, 2, 0, nil, func(run []core.ID) error {
		if run[0] == "c" {
			return core.ErrNotMigrated
		}
		return nil
	})
	require.ErrorContains(t, err, "after 2 of 5 items")
	require.NotErrorIs(t, err, core.ErrNotMigrated, "two items took effect")
	err = claim.InChunks(items, 2, 0, nil, notDone("c"))
	var op *net.OpError
	require.ErrorAs(t, err, &op, "the driver's own error")
}

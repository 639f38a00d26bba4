package index_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/index"
)

// A write that hung on the primary ends in the backup when the primary is at work
// again already.
func TestNothingStaysBehindInTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newRemote(), heapindex.New()
		x := failover(t, primary, backup)
		stop := watching(t, x, func() {})
		primary.state.Store(hanging)
		late := make(chan error, 1)
		go func() { // a slow caller
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			late <- x.Add(ctx, []core.Entry{{ID: "late", Due: in(time.Hour)}})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _ = x.Due(ctx, in(0), 1)
		cancel()
		primary.state.Store(well)
		time.Sleep(10 * time.Second)
		_, err := generation(t, x)
		require.NoError(t, err, "the primary is at work again")
		require.NoError(t, <-late)
		time.Sleep(2 * time.Second)
		assert.Zero(t, backup.Len())
		assert.Equal(t, 1, primary.Len())
		stop()
	})
}

// moody is a primary each of whose Takes fails and whose Adds are slow.
type moody struct{ *remote }

func (m moody) Add(ctx context.Context, entries []core.Entry) error {
	time.Sleep(100 * time.Millisecond)
	return m.remote.Add(ctx, entries)
}

func (m moody) Take(context.Context, time.Time, time.Time, int) ([]core.ID, time.Time, error) {
	return nil, time.Time{}, errAway
}

func TestAPrimaryThatFailsWhileEntriesAreBroughtBackIsNotReturnedToAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, backup := moody{newRemote()}, heapindex.New()
		x := failover(t, primary, backup)
		stop := watching(t, x, func() {})
		take := func() { _, _, _ = x.(core.Taker).Take(t.Context(), in(-time.Hour), in(time.Minute), 1) }
		take()
		for i := range 50_000 {
			require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: core.ID(fmt.Sprint(i)), Due: in(time.Hour)}}))
		}
		names := map[string]bool{}
		for range 3000 { // five minutes, most of them with something left to bring
			take()
			name, _ := generation(t, x)
			names[name] = true
			time.Sleep(100 * time.Millisecond)
		}
		assert.Less(t, len(names), 40, "switches")
		stop()
	})
}

func TestACallWhoseTimeIsOverSaysNothingOfThePrimary(t *testing.T) {
	primary := newRemote()
	x := failover(t, primary, heapindex.New())
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	require.ErrorIs(t, x.Add(ctx, []core.Entry{{ID: "a", Due: in(0)}}), context.DeadlineExceeded)
	_, err := generation(t, x)
	require.NoError(t, err)
	assert.Zero(t, primary.calls.Load()-1, "asked for its generation alone")
}

// mute is a primary that doesn't tell its generation.
type mute struct {
	*remote
	err error
}

func (m mute) Generation(context.Context) (string, error) { return "", m.err }

func TestASwitchShowsAlsoWhereThePrimaryTellsNoGeneration(t *testing.T) {
	for _, silent := range []error{nil, errors.New("no permission")} {
		primary := mute{newRemote(), silent}
		x := failover(t, primary, heapindex.New())
		before, err := generation(t, x)
		require.ErrorIs(t, err, silent)
		primary.state.Store(gone)
		require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: "a", Due: in(0)}}))
		during, err := generation(t, x)
		require.ErrorIs(t, err, index.ErrOnBackup)
		assert.NotEqual(t, before, during)
	}
}

// dozer is a primary whose Watch ends by itself.
type dozer struct {
	*remote
	watched atomic.Int32
}

func (d *dozer) Watch(ctx context.Context, notify func()) error {
	if d.watched.Add(1) < 3 {
		return nil
	}
	return d.remote.Watch(ctx, notify)
}

func TestAWatchThatEndsByItselfIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := &dozer{remote: newRemote()}
		x := failover(t, primary, heapindex.New())
		var woken atomic.Int32
		stop := watching(t, x, func() { woken.Add(1) })
		time.Sleep(5 * time.Second)
		before := woken.Load()
		require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: "a", Due: in(0)}}))
		synctest.Wait()
		assert.Greater(t, woken.Load(), before)
		stop()
	})
}

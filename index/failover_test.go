package index_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

var errAway = errors.New("away")

// How a remote misbehaves.
const (
	well     int32 = iota
	gone           // every call fails
	readOnly       // writes fail
	hanging        // no call returns before its ctx is done
)

// remote is a heap that plays a server.
type remote struct {
	*heapindex.Index
	state atomic.Int32
	calls atomic.Int32
	name  atomic.Int32 // its generation
}

func newRemote() *remote { return &remote{Index: heapindex.New()} }

func (r *remote) answer(ctx context.Context, write bool) error {
	r.calls.Add(1)
	switch state := r.state.Load(); {
	case state == gone, state == readOnly && write:
		return errAway
	case state == hanging:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (r *remote) Add(ctx context.Context, entries []core.Entry) error {
	if err := r.answer(ctx, true); err != nil {
		return err
	}
	return r.Index.Add(ctx, entries)
}

func (r *remote) Due(ctx context.Context, now time.Time, limit int) ([]core.Entry, error) {
	if err := r.answer(ctx, false); err != nil {
		return nil, err
	}
	return r.Index.Due(ctx, now, limit)
}

func (r *remote) Move(ctx context.Context, moves []core.Move) error {
	if err := r.answer(ctx, true); err != nil {
		return err
	}
	return r.Index.Move(ctx, moves)
}

func (r *remote) Remove(ctx context.Context, entries []core.Entry) error {
	if err := r.answer(ctx, true); err != nil {
		return err
	}
	return r.Index.Remove(ctx, entries)
}

func (r *remote) Take(ctx context.Context, now, until time.Time, limit int) ([]core.ID, time.Time, error) {
	if err := r.answer(ctx, true); err != nil {
		return nil, time.Time{}, err
	}
	return r.Index.Take(ctx, now, until, limit)
}

func (r *remote) AddMissing(ctx context.Context, entries []core.Entry) error {
	if err := r.answer(ctx, true); err != nil {
		return err
	}
	return r.Index.AddMissing(ctx, entries)
}

func (r *remote) Generation(ctx context.Context) (string, error) {
	if err := r.answer(ctx, false); err != nil {
		return "", err
	}
	return fmt.Sprint("g", r.name.Load()), nil
}

func in(d time.Duration) time.Time { return core.CeilMilli(time.Now().Add(d)) }

func failover(t *testing.T, primary, backup core.TimeIndex) core.TimeIndex {
	t.Helper()
	x, err := index.Failover(primary, backup)
	require.NoError(t, err)
	return x
}

func generation(t *testing.T, x core.TimeIndex) (string, error) {
	t.Helper()
	name, err := x.(core.Detector).Generation(t.Context())
	require.NotEmpty(t, name)
	return name, err
}

// watching runs Watch until stop is called.
func watching(t *testing.T, x core.TimeIndex, notify func()) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.(core.Watcher).Watch(ctx, notify) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func TestAFailoverWantsTwoIndexes(t *testing.T) {
	for _, parts := range [][2]core.TimeIndex{{nil, heapindex.New()}, {heapindex.New(), nil}} {
		_, err := index.Failover(parts[0], parts[1])
		require.ErrorIs(t, err, core.ErrInvalid)
		require.ErrorContains(t, err, "want two indexes")
	}
}

func TestWhileThePrimaryIsWellTheBackupStaysEmpty(t *testing.T) {
	primary, backup := newRemote(), heapindex.New()
	x := failover(t, primary, backup)
	due := in(-time.Second)
	require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: "a", Due: due}}))
	ids, _, err := x.(core.Taker).Take(t.Context(), in(0), in(time.Minute), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.ID{"a"}, ids)
	assert.Equal(t, 1, primary.Len())
	assert.Zero(t, backup.Len())
	_, err = generation(t, x)
	require.NoError(t, err)
}

func TestAnAwayPrimaryCostsOneTakeAndItsEntriesComeBack(t *testing.T) {
	for _, state := range []int32{gone, hanging, readOnly} {
		synctest.Test(t, func(t *testing.T) {
			primary, backup := newRemote(), heapindex.New()
			x := failover(t, primary, backup)
			stop := watching(t, x, func() {})
			before, err := generation(t, x)
			require.NoError(t, err)

			primary.state.Store(state)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _, err = x.(core.Taker).Take(ctx, in(0), in(time.Minute), 10)
			cancel()
			require.Error(t, err, "the call that finds out tells the scheduler")
			require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: "a", Due: in(0)}, {ID: "b", Due: in(time.Hour)}}))
			require.NoError(t, x.(core.Restorer).AddMissing(t.Context(), []core.Entry{{ID: "c", Due: in(time.Hour)}}))
			ids, _, err := x.(core.Taker).Take(t.Context(), in(0), in(time.Minute), 10)
			require.NoError(t, err)
			assert.Equal(t, []core.ID{"a"}, ids)
			during, err := generation(t, x)
			require.ErrorIs(t, err, index.ErrOnBackup)
			if state != hanging {
				require.ErrorIs(t, err, errAway, "the cause is shown")
			}
			assert.NotEqual(t, before, during)

			time.Sleep(10 * time.Second)
			still, err := generation(t, x)
			require.ErrorIs(t, err, index.ErrOnBackup)
			assert.Equal(t, during, still)
			primary.state.Store(well)
			time.Sleep(5 * time.Second)
			after, err := generation(t, x)
			require.NoError(t, err)
			assert.NotEqual(t, before, after, "any number of entries may be missing in it")
			assert.Zero(t, backup.Len())
			assert.Equal(t, 3, primary.Len())
			stop()
		})
	}
}

func TestAWriteThatFindsThePrimaryAwaySucceedsOnTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newRemote(), heapindex.New()
		primary.state.Store(hanging)
		x := failover(t, primary, backup)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, x.Add(ctx, []core.Entry{{ID: "a", Due: in(0)}}), "though the time of its ctx is over")
		assert.Equal(t, 1, backup.Len())
		due, err := x.Due(t.Context(), in(0), 1)
		require.NoError(t, err)
		require.Len(t, due, 1)
		require.NoError(t, x.Move(t.Context(), []core.Move{{ID: "a", From: due[0].Due, To: in(time.Minute)}}))
		require.NoError(t, x.Remove(t.Context(), []core.Entry{{ID: "a", Due: in(time.Minute)}}))
	})
}

func TestNeitherACallersCancelNorABadArgumentIsThePrimarysFault(t *testing.T) {
	primary := newRemote()
	primary.state.Store(hanging)
	x := failover(t, primary, heapindex.New())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Due(ctx, in(0), 1)
	require.Error(t, err)
	primary.state.Store(well)
	_, err = generation(t, x)
	require.NoError(t, err)
}

func TestWithoutAWatchACallNowAndThenTriesThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newRemote(), heapindex.New()
		x := failover(t, primary, backup)
		primary.state.Store(gone)
		for i := range 600 {
			require.NoError(t, x.Add(t.Context(), []core.Entry{{ID: core.ID(fmt.Sprint(i)), Due: in(time.Hour)}}))
		}
		assert.Equal(t, int32(1), primary.calls.Load())
		time.Sleep(2 * time.Second)
		primary.state.Store(well)
		for range 5 {
			_, err := x.Due(t.Context(), in(0), 1)
			require.NoError(t, err)
		}
		assert.Equal(t, 600, primary.Len())
		assert.Zero(t, backup.Len())
	})
}

// flutter lets a primary fail again soon after each return.
func TestAPrimaryThatKeepsFailingIsTriedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newRemote()
		x := failover(t, primary, heapindex.New())
		stop := watching(t, x, func() {})
		names := map[string]bool{}
		for range 600 { // a second each
			primary.state.Store(gone)
			_, _ = x.Due(t.Context(), in(0), 1)
			name, _ := generation(t, x)
			names[name] = true
			primary.state.Store(well)
			time.Sleep(time.Second)
		}
		assert.Less(t, len(names), 30, "switches in ten minutes")
		assert.Greater(t, len(names), 10, "switches in ten minutes")
		stop()
	})
}

func TestAFailureFromBeforeTheReturnSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newRemote()
		x := failover(t, primary, heapindex.New())
		stop := watching(t, x, func() {})
		primary.state.Store(hanging)
		late := make(chan error, 1)
		go func() { // a slow caller, that has a minute
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := x.Due(ctx, in(0), 1)
			late <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _ = x.Due(ctx, in(0), 1)
		cancel()
		primary.state.Store(well)
		time.Sleep(10 * time.Second)
		before, err := generation(t, x)
		require.NoError(t, err)
		require.Error(t, <-late)
		after, err := generation(t, x)
		require.NoError(t, err)
		assert.Equal(t, before, after)
		stop()
	})
}

func TestAFailoverHasTheCapabilitiesThatBothPartsHave(t *testing.T) {
	plain := struct{ core.TimeIndex }{heapindex.New()}
	restores := struct {
		core.TimeIndex
		core.Restorer
	}{heapindex.New(), heapindex.New()}
	takes := struct {
		core.TimeIndex
		core.Taker
	}{heapindex.New(), heapindex.New()}
	for _, c := range []struct {
		name            string
		part            core.TimeIndex
		takes, restores bool
	}{
		{"all", heapindex.New(), true, true},
		{"none", plain, false, false},
		{"restores", restores, false, true},
		{"takes", takes, true, false},
	} {
		x := failover(t, c.part, heapindex.New())
		_, ok := x.(core.Taker)
		assert.Equal(t, c.takes, ok, c.name)
		_, ok = x.(core.Restorer)
		assert.Equal(t, c.restores, ok, c.name)
		_, ok = x.(core.Watcher)
		assert.True(t, ok, c.name)
	}
}

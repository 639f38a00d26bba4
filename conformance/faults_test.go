package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noon is some time; the parts under test go by what they are told.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func dueAt(id core.ID, ms int) core.Entry {
	return core.Entry{ID: id, Due: noon.Add(time.Duration(ms) * time.Millisecond)}
}

// A wrapper that injects nothing keeps the whole contract of what it wraps.
func TestWrappersWithoutFaultsKeepTheContract(t *testing.T) {
	calm := conformance.NewFaults(conformance.FaultOptions{})
	t.Run("index", func(t *testing.T) {
		conformance.TestIndex(t, conformance.Index{
			New:      func(*testing.T) core.TimeIndex { return conformance.FaultyIndex(heapindex.New(), calm) },
			Provides: conformance.IndexProvides{Taker: true, Watcher: true, Restorer: true, Lister: true},
		})
	})
	t.Run("store", func(t *testing.T) {
		conformance.TestStore(t, conformance.Store{
			New: func(*testing.T) core.Store {
				return conformance.FaultyStore(claim.NewMemory(claim.MemoryOptions{}), calm)
			},
			Provides: conformance.StoreProvides{Purger: true, KeepsFinished: true},
		})
	})
	assert.Empty(t, calm.Injected())
}

func TestWrappersShowAndHideCapabilities(t *testing.T) {
	open := conformance.NewFaults(conformance.FaultOptions{})
	hide := conformance.NewFaults(conformance.FaultOptions{HideTaker: true, HideWatcher: true, HideRestorer: true, HideTimeSource: true, HidePurger: true})
	clocked := struct {
		core.Store
		core.TimeSource
		core.Purger
	}{naive.NewStore(""), processClock{}, naive.NewStore("")}

	_, takes := conformance.FaultyIndex(heapindex.New(), open).(core.Taker)
	_, watches := conformance.FaultyIndex(heapindex.New(), open).(core.Watcher)
	assert.True(t, takes && watches, "an open wrapper shows Take and Watch")
	_, takes = conformance.FaultyIndex(heapindex.New(), hide).(core.Taker)
	_, watches = conformance.FaultyIndex(heapindex.New(), hide).(core.Watcher)
	assert.False(t, takes || watches, "a hiding one hides them")
	_, takes = conformance.FaultyIndex(indexOnly{heapindex.New()}, open).(core.Taker)
	assert.False(t, takes, "what isn't there isn't made up")

	_, tells := conformance.FaultyClaimer(clocked, open).(core.TimeSource)
	_, purges := conformance.FaultyClaimer(clocked, open).(core.Purger)
	_, keeps := conformance.FaultyClaimer(clocked, open).(core.Store)
	assert.True(t, tells && purges && keeps, "an open wrapper shows Now, Purge and Insert")
	_, tells = conformance.FaultyStore(clocked, hide).(core.TimeSource)
	_, purges = conformance.FaultyStore(clocked, hide).(core.Purger)
	assert.False(t, tells || purges, "a hiding one hides Now and Purge")
	_, keeps = conformance.FaultyClaimer(storeless{clocked}, open).(core.Store)
	assert.False(t, keeps, "a claimer doesn't become a store")
}

// Each set of capabilities comes out as it went in.
func TestAFaultyIndexHasWhatItsIndexHas(t *testing.T) {
	x := heapindex.New()
	for _, idx := range []core.TimeIndex{
		x, indexOnly{x},
		struct {
			core.TimeIndex
			core.Taker
		}{x, x},
		struct {
			indexOnly
			core.Lister
		}{indexOnly{x}, x},
		struct {
			core.TimeIndex
			core.Watcher
		}{x, x},
		struct {
			core.TimeIndex
			core.Restorer
		}{x, x},
		struct {
			indexOnly
			core.Taker
			core.Watcher
		}{indexOnly{x}, x, x},
		struct {
			indexOnly
			core.Taker
			core.Restorer
		}{indexOnly{x}, x, x},
		struct {
			indexOnly
			core.Watcher
			core.Restorer
		}{indexOnly{x}, x, x},
	} {
		assert.Equal(t, provided(idx), provided(conformance.FaultyIndex(idx, conformance.NewFaults(conformance.FaultOptions{}))))
		hide := conformance.NewFaults(conformance.FaultOptions{HideRestorer: true, HideLister: true})
		want := provided(idx)
		want.Restorer, want.Lister = false, false
		assert.Equal(t, want, provided(conformance.FaultyIndex(idx, hide)))
	}
}

func provided(idx core.TimeIndex) (p conformance.IndexProvides) {
	_, p.Taker = idx.(core.Taker)
	_, p.Watcher = idx.(core.Watcher)
	_, p.Restorer = idx.(core.Restorer)
	if d, ok := idx.(core.Detector); ok {
		name, _ := d.Generation(context.Background())
		p.Detector = name != ""
	}
	if l, ok := idx.(core.Lister); ok {
		_ = idx.Add(context.Background(), []core.Entry{dueAt("probe", 0)})
		list, _ := l.List(context.Background(), core.Entry{}, noon.Add(time.Second), 1)
		p.Lister = len(list) > 0
	}
	return p
}

// A wrapper that forgot them would have sweeps claim what they must not, and
// producers track ids that can't be.
func TestFaultyClaimersSayWhatTheirIDsAndDatesAre(t *testing.T) {
	noClock, clock := storeless{naive.NewStore("")}, processClock{}
	for _, clocked := range []bool{false, true} {
		for _, undated := range []bool{false, true} {
			faults := conformance.NewFaults(conformance.FaultOptions{Fail: 1})
			own := narrow{undated: undated}
			var c core.Claimer = struct {
				core.Claimer
				narrow
			}{noClock, own}
			var s core.Store = struct {
				core.Store
				narrow
			}{naive.NewStore(""), own}
			if clocked {
				c = struct {
					core.Claimer
					core.TimeSource
					narrow
				}{noClock, clock, own}
				s = struct {
					core.Store
					core.TimeSource
					core.Purger
					narrow
				}{naive.NewStore(""), clock, naive.NewStore(""), own}
			}
			for _, bad := range []core.Claimer{conformance.FaultyClaimer(c, faults), conformance.FaultyClaimer(s, faults), conformance.FaultyStore(s, faults)} {
				assert.Equal(t, undated, bad.(core.Undated).Undated())
				assert.ErrorIs(t, bad.(core.IDChecker).CheckID("x"), core.ErrInvalid)
				assert.NoError(t, bad.(core.IDChecker).CheckID("7"))
				_, tells := bad.(core.TimeSource)
				assert.Equal(t, clocked, tells)
			}
			assert.Empty(t, faults.Injected(), "they ask no backend")
		}
	}
	plain := conformance.FaultyStore(naive.NewStore(""), conformance.NewFaults(conformance.FaultOptions{}))
	assert.False(t, plain.(core.Undated).Undated(), "as if it weren't there")
	assert.NoError(t, plain.(core.IDChecker).CheckID("x"), "as if it weren't there")
}

// narrow is what a store of one-digit ids has to say.
type narrow struct{ undated bool }

func (n narrow) Undated() bool { return n.undated }

func (narrow) CheckID(id core.ID) error {
	if len(id) != 1 || id[0] < '0' || id[0] > '9' {
		return core.ErrInvalid
	}
	return nil
}

// storeless hides all but a store's claims.
type storeless struct{ core.Claimer }

// processClock only looks like a clock.
type processClock struct{ core.TimeSource }

func TestAFailedCallDoesNothingAndALostReplyDoesEverything(t *testing.T) {
	for _, c := range []struct {
		opt   conformance.FaultOptions
		kind  conformance.Fault
		there int
	}{
		{conformance.FaultOptions{Fail: 1}, conformance.FaultFail, 0},
		{conformance.FaultOptions{Lose: 1}, conformance.FaultLose, 1},
	} {
		idx, store := heapindex.New(), claim.NewMemory(claim.MemoryOptions{})
		faults := conformance.NewFaults(c.opt)
		badIndex, badStore := conformance.FaultyIndex(idx, faults), conformance.FaultyStore(store, faults)
		assert.ErrorIs(t, badIndex.Add(t.Context(), []core.Entry{dueAt("a", 0)}), conformance.ErrInjected, string(c.kind))
		err := badStore.Insert(t.Context(), core.Call{ID: "c", Now: noon}, []core.Task{{ID: "a", Due: noon}})
		assert.ErrorIs(t, err, conformance.ErrInjected, string(c.kind))
		due, err := idx.Due(t.Context(), noon, 10)
		require.NoError(t, err)
		assert.Len(t, due, c.there, "entries after %q", c.kind)
		waiting, err := store.Waiting(t.Context(), noon, core.Entry{}, noon.Add(1), 10)
		require.NoError(t, err)
		assert.Len(t, waiting, c.there, "tasks after %q", c.kind)
		assert.Equal(t, map[conformance.Fault]int{c.kind: 2}, faults.Injected())
		err = badIndex.(core.Restorer).AddMissing(t.Context(), []core.Entry{dueAt("r", 0)})
		assert.ErrorIs(t, err, conformance.ErrInjected, string(c.kind))
		due, err = idx.Due(t.Context(), noon, 10)
		require.NoError(t, err)
		assert.Len(t, due, 2*c.there, "entries after AddMissing met %q", c.kind)
		assert.Equal(t, map[conformance.Fault]int{c.kind: 3}, faults.Injected())

		faults.Stop()
		require.NoError(t, badIndex.Add(t.Context(), []core.Entry{dueAt("b", 0)}), "after Stop")
		assert.Equal(t, map[conformance.Fault]int{c.kind: 3}, faults.Injected(), "after Stop")
		faults.Start()
		assert.ErrorIs(t, badIndex.Add(t.Context(), []core.Entry{dueAt("b", 0)}), conformance.ErrInjected, "after Start")
	}
}

func TestACallThatIsDoneTwiceAnswersAsTheSecondTime(t *testing.T) {
	store := claim.NewMemory(claim.MemoryOptions{})
	bad := conformance.FaultyStore(store, conformance.NewFaults(conformance.FaultOptions{Twice: 1}))
	require.NoError(t, bad.Insert(t.Context(), core.Call{ID: "c", Now: noon}, []core.Task{{ID: "a", Due: noon}}), "a repeat of the same call")
	got, err := bad.Claim(t.Context(), []core.ID{"a"}, core.Lease{Holder: "h", Now: noon, DueBy: noon, Until: noon.Add(time.Minute)})
	require.NoError(t, err)
	require.Equal(t, core.Granted.String(), got[0].Verdict.String())
	assert.Equal(t, 1, got[0].Attempt, "the same grant")
	fates, err := bad.Cancel(t.Context(), core.Call{Now: noon}, []core.ID{"a", "none"})
	require.NoError(t, err)
	assert.Equal(t, []core.Fate{core.WasRunning, core.Unknown}, fates)
}

func TestEntriesAreLostAndDoubled(t *testing.T) {
	due := func(idx core.TimeIndex) int {
		list, err := idx.Due(t.Context(), noon.Add(time.Hour), 10)
		require.NoError(t, err)
		return len(list)
	}
	take := func(idx core.TimeIndex) int {
		taken, _, err := idx.(core.Taker).Take(t.Context(), noon, noon.Add(time.Minute), 10)
		require.NoError(t, err)
		return len(taken)
	}

	inner := heapindex.New()
	losing := conformance.FaultyIndex(inner, conformance.NewFaults(conformance.FaultOptions{LoseEntry: 1}))
	require.NoError(t, losing.Add(t.Context(), []core.Entry{dueAt("a", 0)}))
	assert.Zero(t, due(inner), "a lost entry never got there")
	require.NoError(t, inner.Add(t.Context(), []core.Entry{dueAt("b", 0)}))
	assert.Zero(t, take(losing), "a lost entry is handed to nobody")
	assert.Zero(t, take(inner), "but it was taken")

	require.NoError(t, losing.(core.Restorer).AddMissing(t.Context(), []core.Entry{dueAt("c", 0)}))
	assert.Equal(t, 1, due(inner), "nor does one that was to be restored")

	inner = heapindex.New()
	faults := conformance.NewFaults(conformance.FaultOptions{DoubleEntry: 1})
	doubling := conformance.FaultyIndex(inner, faults)
	require.NoError(t, doubling.Add(t.Context(), []core.Entry{dueAt("a", 0)}))
	assert.Equal(t, 1, take(doubling))
	assert.Equal(t, 1, take(doubling), "a doubled entry is taken again")
	require.NoError(t, doubling.Remove(t.Context(), []core.Entry{dueAt("a", 0)}))
	assert.Equal(t, 1, due(inner), "a doubled entry stays")
	assert.Equal(t, 3, faults.Injected()[conformance.FaultDoubleEntry])
}

func TestADelayEndsWithItsContext(t *testing.T) {
	faults := conformance.NewFaults(conformance.FaultOptions{Delay: 1, MaxDelay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := conformance.FaultyIndex(heapindex.New(), faults).Add(ctx, []core.Entry{dueAt("a", 0)})
	assert.ErrorIs(t, err, ctx.Err())
	assert.Equal(t, 1, faults.Injected()[conformance.FaultDelay])
}

func TestFaultsFollowTheirSeed(t *testing.T) {
	pattern := func(seed uint64) string {
		idx := conformance.FaultyIndex(heapindex.New(), conformance.NewFaults(conformance.FaultOptions{Seed: seed, Fail: 0.5}))
		text := ""
		for i := range 64 {
			text += map[bool]string{true: "+", false: "-"}[idx.Add(t.Context(), []core.Entry{dueAt("a", i)}) == nil]
		}
		return text
	}
	assert.Equal(t, pattern(7), pattern(7))
	assert.NotEqual(t, pattern(7), pattern(8))
}

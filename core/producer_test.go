package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func TestScheduleSaysWhichRuleABadTaskBreaks(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		task core.Task
		says string
	}{
		"id empty":             {core.Task{Due: now}, "id is empty"},
		"id of 256 bytes":      {core.Task{ID: core.ID(strings.Repeat("x", 256)), Due: now}, "256 bytes"},
		"id with NUL":          {core.Task{ID: "a\x00b", Due: now}, "control character at byte 1"},
		"id with a newline":    {core.Task{ID: "a\nb", Due: now}, "control character"},
		"id with C1 control":   {core.Task{ID: "a\u0085b", Due: now}, "control character"},
		"id not UTF-8":         {core.Task{ID: "a\xff", Due: now}, "not valid UTF-8"},
		"id ends with a space": {core.Task{ID: "a ", Due: now}, "white space"},
		"id starts with one":   {core.Task{ID: "\u00a0a", Due: now}, "white space"},
		"kind too long":        {core.Task{ID: "a", Kind: strings.Repeat("k", 101), Due: now}, "kind has 101 bytes"},
		"kind not UTF-8":       {core.Task{ID: "a", Kind: "\xff", Due: now}, "kind"},
		"payload over 1 MiB":   {core.Task{ID: "a", Payload: make([]byte, 1<<20+1), Due: now}, "payload has 1048577 bytes"},
		"meta over 16 KiB":     {core.Task{ID: "a", Meta: make([]byte, 16<<10+1), Due: now}, "meta has"},
		"due zero":             {core.Task{ID: "a"}, "due time is zero"},
		"due in year 1":        {core.Task{ID: "a", Due: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, "outside 1970 through 9999"},
		"due before 1970":      {core.Task{ID: "a", Due: time.UnixMilli(-1)}, "outside 1970 through 9999"},
		"due in year 10000":    {core.Task{ID: "a", Due: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "outside 1970 through 9999"},
		"due rounds up to it":  {core.Task{ID: "a", Due: time.Date(9999, 12, 31, 23, 59, 59, 999_000_001, time.UTC)}, "outside 1970 through 9999"},
		"attempts negative":    {core.Task{ID: "a", Due: now, MaxAttempts: -1}, "MaxAttempts is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			err := p.prod.Schedule(t.Context(), core.Task{ID: "before", Due: now}, c.task, core.Task{ID: "after", Due: now})
			require.ErrorIs(t, err, core.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			assert.Less(t, len(err.Error()), 400, "error text stays readable")
			var batch *core.BatchError
			require.ErrorAs(t, err, &batch)
			require.Len(t, batch.Items, 1)
			assert.Equal(t, 1, batch.Items[0].Index, "names the item")
			for _, id := range []core.ID{"before", "after"} {
				_, ok := p.store.Task(id)
				assert.True(t, ok, "%s is stored", id)
			}
		})
	}
}

func TestScheduleTakesTheWholeRangeOfTimesAndRoundsUp(t *testing.T) {
	p := newParts(t)
	for i, due := range []time.Time{
		time.UnixMilli(0),
		time.Unix(1_700_000_000, 1),
		time.Date(2200, 2, 28, 23, 59, 59, 999_999_999, time.FixedZone("x", 3600)),
		time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
	} {
		id := core.ID(fmt.Sprint(i))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: id, Due: due}), due)
		row, _ := p.store.Task(id)
		got := time.UnixMilli(row.Due)
		assert.False(t, got.Before(due), "%s stored as %s: early", due, got)
		assert.Less(t, got.Sub(due), time.Millisecond)
	}
}

func TestBatchesOfAnySize(t *testing.T) {
	now := time.Now()
	for _, n := range []int{0, 1, 1001, 2500} {
		p := newParts(t)
		tasks := make([]core.Task, n)
		for i := range tasks {
			tasks[i] = core.Task{ID: core.ID(fmt.Sprint("t", i)), Due: now}
		}
		if n > 1000 {
			tasks[1000].ID = "bad "
			tasks[7] = tasks[3] // an id twice
		}
		err := p.prod.Schedule(t.Context(), tasks...)
		stored := 0
		for range p.store.All() {
			stored++
		}
		if n <= 1000 {
			require.NoError(t, err)
			assert.Equal(t, n, stored)
			continue
		}
		var batch *core.BatchError
		require.ErrorAs(t, err, &batch)
		require.Len(t, batch.Items, 2)
		assert.Equal(t, 7, batch.Items[0].Index)
		require.ErrorContains(t, batch.Items[0], "twice, first as item 3")
		assert.Equal(t, 1000, batch.Items[1].Index)
		assert.Equal(t, n-2, stored)
		// The items that a second call refuses are named by their own places too.
		err = p.prod.Schedule(t.Context(), append([]core.Task{{ID: "new", Due: now}}, tasks[1200%n])...)
		require.ErrorIs(t, err, core.ErrExists)
		require.ErrorAs(t, err, &batch)
		assert.Equal(t, 1, batch.Items[0].Index)
	}
}

func TestUnknownOutcomeCarriesTheCallForARepeat(t *testing.T) {
	p := newParts(t)
	store := &hookedStore{Store: p.store}
	store.set(func(op string, call func() error) error { // stored, the reply lost every time
		_ = call()
		return errAway
	})
	prod, err := core.NewProducer(p.idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	task := core.Task{ID: "x", Due: time.Now()}
	err = prod.Schedule(t.Context(), task)
	var unknown *core.OutcomeError
	require.ErrorAs(t, err, &unknown)
	require.ErrorIs(t, err, errAway)
	store.set(nil)
	require.ErrorIs(t, prod.Schedule(t.Context(), task), core.ErrExists, "another call")
	require.NoError(t, prod.ScheduleCall(t.Context(), unknown.Call, task), "a repeat of the same call")
	require.ErrorIs(t, prod.ScheduleCall(t.Context(), core.Call{ID: "no spaces", Now: time.Now()}, task), core.ErrInvalid)
}

func TestCallersContextEndsACallInTime(t *testing.T) {
	p := newParts(t)
	store := &hookedStore{Store: p.store}
	store.set(failing("insert"))
	prod, err := core.NewProducer(p.idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.Error(t, prod.Schedule(ctx, core.Task{ID: "x", Due: time.Now()}))
	assert.Less(t, time.Since(start), time.Second)
}

func TestCancelAndReschedule(t *testing.T) {
	p := newParts(t)
	now := core.CeilMilli(time.Now())
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "a", Due: now.Add(time.Hour)}, core.Task{ID: "b", Due: now.Add(time.Hour)}))
	fates, err := p.prod.Cancel(t.Context(), "a", "", "none")
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.Equal(t, []core.Fate{core.Cancelled, 0, core.Unknown}, fates)
	fates, err = p.prod.Cancel(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, []core.Fate{core.Cancelled}, fates, "a repeat")

	err = p.prod.Reschedule(t.Context(),
		core.Move{ID: "a", To: now}, core.Move{ID: "b", From: now, To: now}, core.Move{ID: "b", To: now})
	var batch *core.BatchError
	require.ErrorAs(t, err, &batch)
	require.Len(t, batch.Items, 3)
	require.ErrorIs(t, batch.Items[0], core.ErrNotPending)
	require.ErrorIs(t, batch.Items[1], core.ErrMoved)
	require.ErrorIs(t, batch.Items[2], core.ErrInvalid)
	require.NoError(t, p.prod.Reschedule(t.Context(), core.Move{ID: "b", From: now.Add(time.Hour), To: now}))

	r := &recorder{}
	n, err := p.scheduler(t, r, core.Options{}).Tick(t.Context(), now.Add(time.Second))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 0, r.get("a"))
	assert.Equal(t, 1, r.get("b"))
}

func TestTrackedRowsOfTheUsersOwnRun(t *testing.T) {
	store := claim.NewMemory(claim.MemoryOptions{})
	own := struct{ core.Claimer }{store} // a claimer that keeps no tasks, as far as core can see
	idx := heapindex.New()
	prod, err := core.NewProducer(idx, own, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	now := core.CeilMilli(time.Now())
	require.ErrorContains(t, prod.Schedule(t.Context(), core.Task{ID: "x", Due: now}), "Track")
	require.NoError(t, store.Insert(t.Context(), core.Call{ID: "own", Now: now}, []core.Task{{ID: "x", Due: now}}))
	err = prod.Track(t.Context(), core.Entry{ID: "x", Due: now}, core.Entry{ID: "bad ", Due: now})
	require.ErrorIs(t, err, core.ErrInvalid)
	r := &recorder{}
	n, err := newScheduler(t, idx, own, r, core.Options{}).Tick(t.Context(), now.Add(time.Second))
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}

func TestPartsAndOptionsAreChecked(t *testing.T) {
	p := newParts(t)
	ok := &recorder{}
	var nilMux *core.Mux
	var bad core.Mux
	core.Handle[int](&bad, "k", nil)
	bad.Register("k", ok)
	bad.Register("k", ok)
	for name, err := range map[string]error{
		"nil index":     second(core.New(nil, p.store, ok, core.Options{})),
		"nil store":     second(core.New(p.idx, nil, ok, core.Options{})),
		"nil handler":   second(core.New(p.idx, p.store, nil, core.Options{})),
		"nil func":      second(core.New(p.idx, p.store, core.HandlerFunc(nil), core.Options{})),
		"nil mux":       second(core.New(p.idx, p.store, nilMux, core.Options{})),
		"mux mistakes":  second(core.New(p.idx, p.store, &bad, core.Options{})),
		"slots":         second(core.New(p.idx, p.store, ok, core.Options{Slots: -1})),
		"lease":         second(core.New(p.idx, p.store, ok, core.Options{Lease: time.Millisecond})),
		"ahead":         second(core.New(p.idx, p.store, ok, core.Options{Ahead: time.Minute})),
		"horizon":       second(core.New(p.idx, p.store, ok, core.Options{Horizon: time.Second})),
		"no producer":   second(core.NewProducer(nil, p.store, core.ProducerOptions{})),
		"producer time": second(core.NewProducer(p.idx, p.store, core.ProducerOptions{Timeout: -1})),
	} {
		require.ErrorIs(t, err, core.ErrInvalid, name)
	}
	err := bad.Err()
	require.ErrorContains(t, err, `"k" is nil`)
	require.ErrorContains(t, err, "two handlers")
}

func second[T any](_ T, err error) error { return err }

func TestPayloadsThatDontFitAreFailuresAndStay(t *testing.T) {
	p := newParts(t)
	var mux core.Mux
	core.Handle(&mux, "mail", func(context.Context, *core.Job, struct{ To int }) error { return errors.New("not reached") })
	due := time.Now()
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Kind: "mail", Payload: []byte(`{"To":"bob"}`), Due: due, MaxAttempts: 2}))
	s := p.scheduler(t, &mux, core.Options{Backoff: func(int) time.Duration { return time.Millisecond }})
	for i := range 2 {
		n, err := s.Tick(t.Context(), due.Add(time.Duration(i+1)*time.Minute))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	row, _ := p.store.Task("x")
	assert.Equal(t, claim.DeadState, row.Status)
	assert.Contains(t, row.LastError, `kind "mail", doesn't fit`)
	assert.JSONEq(t, `{"To":"bob"}`, string(row.Payload), "nothing is lost")
}

func TestErrorTextsAreMadeStorable(t *testing.T) {
	p := newParts(t)
	due := time.Now()
	for i, text := range []string{"a\x00b", "a\xffb", strings.Repeat("é", 4000)} {
		id := core.ID(fmt.Sprint(i))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: id, Due: due}))
		h := core.HandlerFunc(func(context.Context, *core.Job) error { return core.Dead(errors.New(text)) })
		_, err := p.scheduler(t, h, core.Options{}).Tick(t.Context(), due.Add(time.Second))
		require.NoError(t, err)
		row, _ := p.store.Task(id)
		assert.NotContains(t, row.LastError, "\x00")
		assert.LessOrEqual(t, len(row.LastError), core.MaxErrorBytes)
		assert.NotEmpty(t, row.LastError)
		assert.True(t, strings.ToValidUTF8(row.LastError, "") == row.LastError)
	}
}

func TestBatchErrorTextNamesAFewItems(t *testing.T) {
	items := make([]core.ItemError, 10)
	for i := range items {
		items[i] = core.ItemError{Index: i, ID: core.ID(fmt.Sprint("id", i)), Err: core.ErrExists}
	}
	err := core.NewBatchError(items)
	require.ErrorContains(t, err, "10 items failed, all others took effect: item 0, id \"id0\"")
	require.ErrorContains(t, err, "and 7 more")
	require.NoError(t, core.NewBatchError(nil))
}

func TestATableThatIsNotThereIsSaidAtOnceAndIsNoUnknownOutcome(t *testing.T) {
	p := newParts(t)
	store := &hookedStore{Store: p.store}
	store.set(func(op string, call func() error) error {
		if op == "insert" {
			return fmt.Errorf("insert: table x %w", core.ErrNotMigrated)
		}
		return call()
	})
	prod, err := core.NewProducer(p.idx, store, core.ProducerOptions{Logger: quiet()})
	require.NoError(t, err)
	err = prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()})
	require.ErrorIs(t, err, core.ErrNotMigrated)
	require.ErrorContains(t, err, "run Migrate")
	var unknown *core.OutcomeError
	require.NotErrorAs(t, err, &unknown)
	assert.Equal(t, 1, store.count("insert"), "a repeat would not help")
}

// A call that is repeated late must not bring an old token back.
func TestTokensRiseAlsoWhenACallIsRepeatedAfterTheIdWasUsedAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := claim.NewMemory(claim.MemoryOptions{DeleteFinished: true})
		idx := heapindex.New()
		prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
		require.NoError(t, err)
		old, err := prod.NewCall(t.Context())
		require.NoError(t, err)
		var tokens []int64
		s := newScheduler(t, idx, store, core.HandlerFunc(func(_ context.Context, job *core.Job) error {
			tokens = append(tokens, job.Grant.Token)
			return nil
		}), core.Options{})
		for i := range 2 {
			time.Sleep(time.Second)
			task := core.Task{ID: "x", Due: time.Now()}
			if i == 0 {
				err = prod.Schedule(t.Context(), task)
			} else {
				err = prod.ScheduleCall(t.Context(), old, task)
			}
			require.NoError(t, err)
			n, err := s.Tick(t.Context(), time.Now().Add(time.Millisecond))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		assert.Greater(t, tokens[1], tokens[0])
	})
}

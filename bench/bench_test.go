package main

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInBatchesCoversEachOnce(t *testing.T) {
	seen := newOnce(0, 1234)
	require.NoError(t, inBatches(t.Context(), 4, 1234, 100, func(_ context.Context, first, end int) error {
		assert.LessOrEqual(t, end-first, 100)
		for i := first; i < end; i++ {
			seen.mark(i)
		}
		return nil
	}))
	assert.NoError(t, seen.check())
}

func TestInBatchesEndsAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	var mu sync.Mutex
	calls := 0
	err := inBatches(t.Context(), 2, 1_000_000, 1, func(context.Context, int, int) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls >= 3 {
			return broken
		}
		return nil
	})
	assert.ErrorIs(t, err, broken)
	assert.LessOrEqual(t, calls, 5)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, inBatches(ctx, 2, 10, 1, func(context.Context, int, int) error { return nil }), context.Canceled)
}

func TestOnceFindsWhatIsLostOrDoubled(t *testing.T) {
	o := newOnce(100, 3)
	for _, n := range []int{100, 101, 101} {
		o.mark(n)
	}
	assert.EqualError(t, o.check(), "1 tasks never ran, 1 ran more than once")
}

func TestCountdownWaitsForAll(t *testing.T) {
	c := newCountdown(3)
	c.done(2)
	assert.ErrorContains(t, c.wait(t.Context(), time.Millisecond), "1 tasks are not done")
	c.done(1)
	assert.NoError(t, c.wait(t.Context(), time.Minute))
}

func TestTreeTimeAddsDescendants(t *testing.T) {
	children := map[int][]int{1: {2, 3}, 3: {4}, 9: {10}}
	stats := map[int]stat{1: {own: 1}, 2: {own: 2, children: 0.5}, 3: {own: 4}, 4: {own: 8}, 10: {own: 100}}
	assert.InDelta(t, 15.5, treeTime(1, children, stats), 1e-9)
}

func TestInfoField(t *testing.T) {
	info := "# Memory\r\nused_memory_human:1M\r\nused_memory:1048576\r\n"
	assert.Equal(t, "1048576", infoField(info, "used_memory"))
	assert.Empty(t, infoField(info, "absent"))
}

// recorder is a queue that notes what is scheduled and when.
type recorder struct {
	mu sync.Mutex
	at map[int]time.Time
}

func (r *recorder) schedule(_ context.Context, tasks []task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range tasks {
		r.at[t.N] = time.Now()
	}
	return nil
}
func (*recorder) prepare(context.Context) error                                    { return nil }
func (*recorder) work(context.Context, func(int), func(int)) (func() error, error) { return nil, nil }
func (*recorder) left(context.Context) (int, error)                                { return 0, nil }
func (*recorder) close() error                                                     { return nil }

func TestAtRateSchedulesAheadOfDueTimes(t *testing.T) {
	const n, rate, ahead = 100, 500, 10 * time.Second
	q := &recorder{at: map[int]time.Time{}}
	due := make([]time.Time, n)
	_, err := atRate(t.Context(), q, due, rate, ahead)
	require.NoError(t, err)
	require.Len(t, q.at, n)
	for i := range due {
		assert.Equal(t, due[i].Truncate(time.Millisecond), due[i], "whole milliseconds")
		// Not before its turn, but for the millisecond that due times are cut by.
		assert.Less(t, due[i].Sub(q.at[i]), ahead+2*time.Millisecond)
	}
	assert.InDelta(t, float64(n-1)/rate, due[n-1].Sub(due[0]).Seconds(), 0.002)
}

func TestLatenessCountsEarlyOnes(t *testing.T) {
	m := lateness{late: []float64{3, -2, 1, -1, 2}, cpu: 7}.metrics()
	assert.Equal(t, map[string]float64{"p50": 1, "p99": 3, "max": 3, "early": 2, "least": -2, "cpu": 7}, m)
}

func TestTurnsRotate(t *testing.T) {
	all := []system{{name: "a"}, {name: "b"}, {name: "c"}}
	s := &suite{machine: newMachine()}
	names := func(number int, pattern string) (list []string) {
		s.only = regexp.MustCompile(pattern)
		for _, sys := range (&round{suite: s, number: number}).turns(all) {
			list = append(list, sys.name)
		}
		return list
	}
	assert.Equal(t, []string{"a", "b", "c"}, names(0, ""))
	assert.Equal(t, []string{"b", "c", "a"}, names(1, ""))
	assert.Equal(t, []string{"c", "a"}, names(1, "[ac]"))
	assert.Empty(t, names(0, "x"))
}

func TestEachSystemCanBeAsked(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range systems() {
		assert.False(t, seen[s.name], "%s is there twice", s.name)
		seen[s.name] = true
		assert.NotEmpty(t, s.settings, s.name)
		assert.NotEmpty(t, s.keeps, s.name)
	}
	for _, name := range []string{redisPostgres, redisMariaDB, redisMySQL, heapSQLite, heapMemory, heapMemoryRaw, riverBest, riverPlain, asynqBest, asynqPlain} {
		assert.True(t, seen[name], name)
	}
}

func TestNumberInAPayload(t *testing.T) {
	n, err := numberIn(newTask(1234567, time.Now()).payload())
	require.NoError(t, err)
	assert.Equal(t, 1234567, n)
	for _, bad := range []string{"", "{}", `{"n":}`, `{"m":1}`} {
		_, err := numberIn([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func TestPatternTakesPlusAsItIs(t *testing.T) {
	for _, s := range []string{"redis+postgres", `redis\+postgres`, "redis.postgres", "^dueclaim redis"} {
		match, err := pattern(s)
		require.NoError(t, err)
		assert.True(t, match.MatchString(redisPostgres), s)
		assert.False(t, match.MatchString(riverBest), s)
	}
}

func TestUnknownWorkload(t *testing.T) {
	s := &suite{machine: newMachine(), size: tiny(), only: regexp.MustCompile("")}
	assert.ErrorContains(t, s.run(t.Context(), []string{"nonesuch"}), "nonesuch")
}

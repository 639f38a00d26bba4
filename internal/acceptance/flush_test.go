package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/fleet"
)

// The index loses everything in the middle of a run of 10,000 tasks.
func TestAFlushOfTheIndexCostsSomeLatenessAndNothingElse(t *testing.T) {
	pairs := []fleet.Pair{{Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}
	// With more time, one pair after the other at a thousand tasks a second.
	fleet.OnEach(t, !fleet.Stress(), pairs, func(t *testing.T, p fleet.Pair) {
		const n = 10_000
		fleet.InTime(t, func(t *testing.T, try int) (string, bool) {
			// A machine too busy for so many a second would measure itself: next time slower.
			span := time.Duration(fleet.Rounds(20, 10)) * time.Second * []time.Duration{4, 5, 12}[try-1] / 4
			b := fleet.NewBench(t, p)
			var workers []*fleet.Process
			for range 3 {
				workers = append(workers, fleet.Start(t, fleet.Orders{At: b.At, Work: map[string]time.Duration{"job": 0}}))
			}
			began := time.Now().Add(3 * time.Second) // inserted by then, on most machines
			ids := b.Schedule(t, "job", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / n) })
			stored := time.Now()
			time.Sleep(time.Until(began.Add(span / 2)))
			flushed := time.Now()
			require.NoError(t, b.Redis.FlushAll(t.Context()).Err())
			fleet.Until(t, span+30*time.Second, "all are done", func() bool { return fleet.CountAll(workers, fleet.Settled) >= n })
			fleet.StopAll(t, workers)
			fleet.CheckOnce(t, b, workers, ids, false)
			fleet.CheckTokens(t, workers)
			var before, after []fleet.Event
			for _, e := range fleet.Said(workers, fleet.Started, "job") {
				if e.Due < flushed.UnixMilli() {
					before = append(before, e)
				} else {
					after = append(after, e)
				}
			}
			all := fleet.SpreadOf(append(before, after...))
			return fmt.Sprintf("%d tasks over %v, flushed after %.1f s (stored %.1f s before the first was due); due before: %v; due after: %v; calls failed: %v",
				n, span, flushed.Sub(began).Seconds(), began.Sub(stored).Seconds(), fleet.SpreadOf(before), fleet.SpreadOf(after), fleet.Failures(workers)), all.Max <= 3*time.Second
		})
	})
}

package acceptance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The index loses everything in the middle of a run of 10,000 tasks.
func TestAFlushOfTheIndexCostsSomeLatenessAndNothingElse(t *testing.T) {
	pairs := []pair{{viaRedis, mariadb}, {viaRedis, postgres}}
	// With more time, one pair after the other at a thousand tasks a second.
	onEach(t, !stress(), pairs, func(t *testing.T, p pair) {
		const n = 10_000
		inTime(t, func(t *testing.T, try int) (string, bool) {
			// A machine too busy for so many a second would measure itself: next time slower.
			span := time.Duration(rounds(20, 10)) * time.Second * []time.Duration{4, 5, 12}[try-1] / 4
			b := newBench(t, p)
			var workers []*process
			for range 3 {
				workers = append(workers, start(t, orders{At: b.at, Work: map[string]time.Duration{"job": 0}}))
			}
			began := time.Now().Add(3 * time.Second) // inserted by then, on most machines
			ids := b.schedule(t, "job", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / n) })
			stored := time.Now()
			time.Sleep(time.Until(began.Add(span / 2)))
			flushed := time.Now()
			require.NoError(t, b.redis.FlushAll(t.Context()).Err())
			until(t, span+30*time.Second, "all are done", func() bool { return countAll(workers, settled) >= n })
			stopAll(t, workers)
			checkOnce(t, b, workers, ids, false)
			checkTokens(t, workers)
			var before, after []event
			for _, e := range said(workers, started, "job") {
				if e.Due < flushed.UnixMilli() {
					before = append(before, e)
				} else {
					after = append(after, e)
				}
			}
			all := spreadOf(append(before, after...))
			return fmt.Sprintf("%d tasks over %v, flushed after %.1f s (stored %.1f s before the first was due); due before: %v; due after: %v; calls failed: %v",
				n, span, flushed.Sub(began).Seconds(), began.Sub(stored).Seconds(), spreadOf(before), spreadOf(after), failures(workers)), all.max <= 3*time.Second
		})
	})
}

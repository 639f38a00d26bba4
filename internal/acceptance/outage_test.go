package acceptance

import (
	"sync"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// outage is a run of tasks with three workers, during which something happens.
//
// unseen: a claim may take effect without an answer. Nobody knows of it, so its
// tasks wait for the end of the lease, count a crash, and run then, once.
func outage(t *testing.T, b *fleet.Bench, what string, unseen bool, happen func()) {
	t.Helper()
	n, span := fleet.Rounds(2000, 10_000), time.Duration(fleet.Rounds(8, 20))*time.Second
	// Longer than the outage and the back-off after it: else what ran and could
	// not be recorded would run again, as it should.
	const lease = 15 * time.Second
	var workers []*fleet.Process
	for range 3 {
		workers = append(workers, fleet.Start(t, fleet.Orders{At: b.At, Lease: lease, Work: map[string]time.Duration{"job": 0}}))
	}
	began := time.Now().Add(2 * time.Second)
	ids := b.Schedule(t, "job", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / time.Duration(n)) })
	time.Sleep(time.Until(began.Add(span / 4)))
	from := time.Now()
	happen()
	to := time.Now()
	fleet.Until(t, span+60*time.Second, "all are done", func() bool { return fleet.CountAll(workers, fleet.Settled) >= n })
	fleet.StopAll(t, workers)
	unseenTasks := fleet.CheckOnce(t, b, workers, ids, unseen)
	fleet.CheckTokens(t, workers)
	var during, after []fleet.Event
	for _, e := range fleet.Said(workers, fleet.Started, "job") {
		switch {
		case e.Due > to.UnixMilli():
			after = append(after, e)
		case e.Due > from.UnixMilli():
			during = append(during, e)
		}
	}
	t.Logf("measured, %s: %d tasks over %v, %s for %.1f s; due during it: %v; due after it: %v; claimed unseen: %d; calls failed: %v",
		t.Name(), n, span, what, to.Sub(from).Seconds(), fleet.SpreadOf(during), fleet.SpreadOf(after), unseenTasks, fleet.Failures(workers))
}

// Here and below the lateness is only told: how long a server takes to come back
// is its own affair.
func TestNothingIsLostOrDoubledWhileABackendIsAway(t *testing.T) {
	t.Parallel()
	pairs := []fleet.Pair{{Index: fleet.Redis, Store: fleet.MariaDB}, {Index: fleet.Redis, Store: fleet.Postgres}}
	var all sync.WaitGroup
	all.Go(func() {
		t.Run("indexStopped", func(t *testing.T) {
			fleet.OnEach(t, true, pairs, func(t *testing.T, p fleet.Pair) {
				b := fleet.NewBench(t, p)
				outage(t, b, "Redis stopped (SIGSTOP)", false, func() {
					b.Server.Stop()
					time.Sleep(5 * time.Second)
					b.Server.Cont()
				})
			})
		})
	})
	all.Go(func() {
		t.Run("storeKilled", func(t *testing.T) { fleet.OnEach(t, true, pairs, storeKilled) })
	})
	all.Wait()
}

func storeKilled(t *testing.T, p fleet.Pair) {
	kinds := map[string]server.Kind{fleet.MariaDB: server.MariaDB, fleet.Postgres: server.Postgres}
	s := testserver.Private(t, kinds[p.Store], server.Options{Durable: true})
	at := fleet.Place{Store: p.Store, DSN: s.URL(), Redis: testserver.PrivateRedis(t).URL()}
	outage(t, fleet.BenchAt(t, at), p.Store+" killed (SIGKILL)", true, func() {
		s.Kill()
		time.Sleep(2 * time.Second)
		s.Restart()
	})
}

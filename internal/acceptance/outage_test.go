package acceptance

import (
	"sync"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// outage is a run of tasks with three workers, during which something happens.
//
// unseen: a claim may take effect without an answer. Nobody knows of it, so its
// tasks wait for the end of the lease, count a crash, and run then, once.
func outage(t *testing.T, b *bench, what string, unseen bool, happen func()) {
	t.Helper()
	n, span := rounds(2000, 10_000), time.Duration(rounds(8, 20))*time.Second
	// Longer than the outage and the back-off after it: else what ran and could
	// not be recorded would run again, as it should.
	const lease = 15 * time.Second
	var workers []*process
	for range 3 {
		workers = append(workers, start(t, orders{At: b.at, Lease: lease, Work: map[string]time.Duration{"job": 0}}))
	}
	began := time.Now().Add(2 * time.Second)
	ids := b.schedule(t, "job", "job", n, func(i int) time.Time { return began.Add(span * time.Duration(i) / time.Duration(n)) })
	time.Sleep(time.Until(began.Add(span / 4)))
	from := time.Now()
	happen()
	to := time.Now()
	until(t, span+60*time.Second, "all are done", func() bool { return countAll(workers, settled) >= n })
	stopAll(t, workers)
	unseenTasks := checkOnce(t, b, workers, ids, unseen)
	checkTokens(t, workers)
	var during, after []event
	for _, e := range said(workers, started, "job") {
		switch {
		case e.Due > to.UnixMilli():
			after = append(after, e)
		case e.Due > from.UnixMilli():
			during = append(during, e)
		}
	}
	t.Logf("measured, %s: %d tasks over %v, %s for %.1f s; due during it: %v; due after it: %v; claimed unseen: %d; calls failed: %v",
		t.Name(), n, span, what, to.Sub(from).Seconds(), spreadOf(during), spreadOf(after), unseenTasks, failures(workers))
}

// Here and below the lateness is only told: how long a server takes to come back
// is its own affair.
func TestNothingIsLostOrDoubledWhileABackendIsAway(t *testing.T) {
	t.Parallel()
	pairs := []pair{{viaRedis, mariadb}, {viaRedis, postgres}}
	var all sync.WaitGroup
	all.Go(func() {
		t.Run("indexStopped", func(t *testing.T) {
			onEach(t, true, pairs, func(t *testing.T, p pair) {
				b := newBench(t, p)
				outage(t, b, "Redis stopped (SIGSTOP)", false, func() {
					b.server.Stop()
					time.Sleep(5 * time.Second)
					b.server.Cont()
				})
			})
		})
	})
	all.Go(func() {
		t.Run("storeKilled", func(t *testing.T) { onEach(t, true, pairs, storeKilled) })
	})
	all.Wait()
}

func storeKilled(t *testing.T, p pair) {
	kinds := map[string]server.Kind{mariadb: server.MariaDB, postgres: server.Postgres}
	s := testserver.Private(t, kinds[p.store], server.Options{Durable: true})
	at := place{Store: p.store, DSN: s.URL(), Redis: testserver.PrivateRedis(t).URL()}
	outage(t, benchAt(t, at), p.store+" killed (SIGKILL)", true, func() {
		s.Kill()
		time.Sleep(2 * time.Second)
		s.Restart()
	})
}

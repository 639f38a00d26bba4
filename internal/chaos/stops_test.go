package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
)

// Workers are stopped beyond their lease and go on: 150 times in all. What was
// taken over meanwhile they must not complete, and their handlers must hear of it.
func TestStoppedWorkersCompleteNothingThatWasTakenOver(t *testing.T) {
	t.Parallel()
	fleet.OnEach(t, true, onRedis, func(t *testing.T, p fleet.Pair) {
		const victims = 3
		r := begin(t, fleet.NewBench(t, p), 0)
		rounds := fleet.Rounds(1, 25)
		held := make([]stops, victims)
		work := map[string]time.Duration{"job": 5 * time.Millisecond, "slow": 400 * time.Millisecond, "far": 0}
		for i := range victims {
			work[holdKind(i)] = 0
		}
		var all sync.WaitGroup
		for i := range victims {
			kind := holdKind(i)
			// Each victim has a kind of its own to hold; all others do it at once.
			o := r.orders
			o.Work = maps.Clone(work)
			o.Work[kind] = fleet.UntilCancelled
			o.Drain = 500 * time.Millisecond
			victim := fleet.Start(t, o)
			r.workers, r.all = append(r.workers, victim), append(r.all, victim)
			held[i] = stops{r: r, victim: victim, kind: kind}
		}
		steady := r.orders
		steady.Work = work
		for range 2 {
			w := fleet.Start(t, steady)
			r.workers, r.all = append(r.workers, w), append(r.all, w)
		}
		for i := range held {
			all.Go(func() {
				rng := random(r.seed, uint64(100+i))
				for n := range rounds {
					if !held[i].once(n, between(rng, 0, 300*time.Millisecond)) {
						return
					}
				}
			})
		}
		all.Wait()
		taken := 0
		for _, h := range held {
			r.faults["SIGSTOP beyond the lease"] += h.stops
			taken += h.taken
		}
		require.Equal(t, victims*rounds, r.faults["SIGSTOP beyond the lease"])
		for _, h := range held { // what they still hold they would hold for ever
			h.victim.Stop(t)
		}
		r.workers = r.workers[victims:]
		a := r.end()
		r.report("workers stopped, "+p.Name(), a)
		t.Logf("%d tasks were taken over from stopped workers; each late completion was refused", taken)
	})
}

func holdKind(victim int) string { return fmt.Sprintf("hold%d", victim) }

// stops is one victim's share.
type stops struct {
	r            *run
	victim       *fleet.Process
	kind         string
	stops, taken int
}

// inHand are the tasks of the victim's kind that its handlers hold, with the token.
func (s *stops) inHand() map[core.ID]int64 {
	held := map[core.ID]int64{}
	for _, e := range s.victim.All(fleet.Started, s.kind) {
		held[e.ID] = e.Token
	}
	for _, e := range s.victim.All(fleet.Cancelled, s.kind) {
		if held[e.ID] == e.Token {
			delete(held, e.ID)
		}
	}
	return held
}

// once stops the victim with tasks in hand, waits until others took them, lets it
// go on and waits for what its completions are answered. It runs in a goroutine of
// its own, so it fails by t.Errorf.
func (s *stops) once(n int, before time.Duration) bool {
	t := s.r.t
	tasks := make([]core.Task, 20)
	for try := 0; ; try++ { // in turns, so that one worker doesn't take them all
		if try == 20 {
			t.Errorf("%s: the steady workers always get all of its tasks", s.kind)
			return false
		}
		for i := range tasks {
			tasks[i] = core.Task{ID: core.ID(fmt.Sprintf("%s-%d.%d.%d", s.kind, n, try, i)), Kind: s.kind, Due: time.Now().Add(time.Duration(i) * 30 * time.Millisecond)}
		}
		s.r.schedule(tasks)
		if fleet.Poll(3*time.Second, func() bool { return len(s.inHand()) > 0 }) {
			break
		}
	}
	time.Sleep(before)
	if err := s.victim.Freeze(); err != nil {
		t.Errorf("stop: %v", err)
		return false
	}
	stopped := time.Now()
	time.Sleep(50 * time.Millisecond) // what it said before is read by then
	held := s.inHand()
	elsewhere := func() (taken []core.ID) {
		for _, p := range s.r.workers {
			if p == s.victim {
				continue
			}
			for _, e := range p.All(fleet.Started, s.kind) {
				if token, ok := held[e.ID]; ok && e.Token > token {
					taken = append(taken, e.ID)
				}
			}
		}
		return taken
	}
	all := fleet.Poll(30*time.Second, func() bool { return len(elsewhere()) >= len(held) })
	continued := time.Now()
	if err := s.victim.Thaw(); err != nil {
		t.Errorf("continue: %v", err)
		return false
	}
	if !all {
		t.Errorf("%s: of %d tasks in a stopped worker's hand only %d were taken over", s.kind, len(held), len(elsewhere()))
		return false
	}
	s.stops++
	s.taken += len(held)
	answered := func() map[core.ID]fleet.Event {
		answers := map[core.ID]fleet.Event{}
		for _, e := range s.victim.All(fleet.Settled, s.kind) {
			if token, ok := held[e.ID]; ok && e.Token == token {
				answers[e.ID] = e
			}
		}
		return answers
	}
	if !fleet.Poll(30*time.Second, func() bool { return len(answered()) == len(held) }) {
		t.Errorf("%s: %d of %d late completions were answered", s.kind, len(answered()), len(held))
	}
	for id, e := range answered() {
		assert.True(t, e.Lost, "%s: its late completion was answered %q", id, e.Text)
	}
	for id, token := range held {
		i := slices.IndexFunc(s.victim.All(fleet.Cancelled, s.kind), func(e fleet.Event) bool { return e.ID == id && e.Token == token })
		if !assert.GreaterOrEqual(t, i, 0, "%s: its handler's ctx was not cancelled", id) {
			continue
		}
		e := s.victim.All(fleet.Cancelled, s.kind)[i]
		assert.True(t, e.Lost, "%s: its ctx was cancelled, but not because of the lease", id)
		if e.At >= stopped.UnixMicro() {
			assert.GreaterOrEqual(t, e.At, continued.UnixMicro(), id)
		}
	}
	return !t.Failed()
}

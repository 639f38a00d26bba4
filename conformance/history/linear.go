package history

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/require"
)

// The name and the rule of a concurrent test, as the table of backends and rules
// has them.
const (
	linearCase = "history/linearizable"
	linearRule = "For each id there is one order of all concurrent calls, lost replies among them, that explains every answer."
)

// Clients of a concurrent history, and the handles that they share.
const (
	clients = 5
	handles = 3
)

// A check that takes longer is given up: such a history proves nothing.
const checking = 10 * time.Second

// TestLinearizable has several clients on several handles claim, extend, settle,
// cancel, insert and reschedule the same few tasks at once, as a subtest of t. Some
// calls get lost, some replies; an outcome that is unknown, also because the
// backend reported a lost deadlock or the like, may or may not have taken effect.
// It fails where more than Options.MayFail of the calls, or of those of one kind, fail
// that way, and where more than a tenth of the histories are too tangled to check: then it
// proves nothing.
//
// What the clients call follows from the seed, what comes of it doesn't.
func TestLinearizable(t *testing.T, store conformance.Store, o Options) {
	t.Helper()
	require.NotNil(t, store.New, "conformance.Store.New is nil")
	t.Run(linearCase, func(t *testing.T) {
		attributes(t, linearCase, linearRule)
		start := seed()
		t.Logf("%d concurrent histories, seed %d (the same calls again: -rapid.seed=%d)", o.histories(true), start, start)
		found := searchConcurrent(t, store, start, o)
		t.Log(found.counts())
		if found.broken != nil {
			t.Error(found.text(t.Name()))
			found.broken.draw(t)
		}
	})
}

// ids of a concurrent history.
const ids = 3

func searchConcurrent(t *testing.T, store conformance.Store, start uint64, o Options) concurrency {
	found := concurrency{seed: start, mayFail: o.mayFail()}
	model := rules{keeps: store.Provides.KeepsFinished}.model()
	histories := o.histories(true)
	for n := range histories {
		found.seed, found.played = start+uint64(n), n+1
		events, broken, last := playTogether(t, store, found.seed, o)
		if broken == "" {
			found.count(events, last)
			broken = found.failing(many)
		}
		if broken != "" {
			found.broken = &contradiction{text: broken}
			return found
		}
		parts := byID(events, o.ReadsBack)
		for _, id := range slices.Sorted(maps.Keys(parts)) {
			found.check(model, id, parts[id], cmp.Or(o.checking, checking))
			if broken := found.tangled(histories * ids); broken != "" {
				found.broken = &contradiction{text: broken}
			}
			if found.broken != nil {
				return found
			}
		}
	}
	if broken := found.failing(few); broken != "" {
		found.broken = &contradiction{text: broken}
	}
	return found
}

// check looks for an order that explains the history of an id.
func (f *concurrency) check(model porcupine.Model, id core.ID, history []porcupine.Operation, limit time.Duration) {
	f.checked++
	switch porcupine.CheckOperationsTimeout(model, history, limit) {
	case porcupine.Ok:
	case porcupine.Unknown:
		f.undecided++
	default:
		history = beginning(model, history, limit)
		_, info := porcupine.CheckOperationsVerbose(model, history, limit)
		f.broken = &contradiction{explain(model, id, history, info), model, info}
	}
}

// playTogether runs one history on a fresh store and returns what its clients saw,
// what ended the history, "" for nothing, and the last error of a call that failed.
func playTogether(t *testing.T, store conformance.Store, seed uint64, o Options) (all []event, broken string, last error) {
	dog := newWatchdog(o.hanging)
	s := &scene{}
	var seen []event
	broken = dog.watch(t, func() {
		on := storeHandles(t, store, handles)
		random := func(stream int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(stream))) }
		s.lost.Store(mostLost)
		for _, i := range random(0).Perm(len(lookalikes))[:ids] {
			s.ids = append(s.ids, lookalikes[i][0])
		}
		team := make([]*client, clients)
		for i := range team {
			team[i] = &client{scene: s, number: i, store: on[i%len(on)], Rand: random(i + 1)}
		}
		team[0].insert(t.Context(), s.ids)
		var together sync.WaitGroup
		begin := make(chan struct{})
		for _, c := range team {
			together.Go(func() {
				<-begin
				c.play(t.Context(), max(1, o.steps()*3/2/clients))
			})
		}
		close(begin)
		together.Wait()
		for _, c := range team {
			seen = append(seen, c.events...)
		}
	}, nil)
	if broken != "" {
		s.fail("the history was given up") // a client may be left
		return nil, broken, nil
	}
	return seen, s.failed(), s.last
}

// byID parts a history by id: a batch takes effect item by item.
func byID(events []event, readsBack bool) map[core.ID][]porcupine.Operation {
	end := int64(0)
	for _, e := range events {
		end = max(end, e.call, e.ret)
	}
	parts := map[core.ID][]porcupine.Operation{}
	late := map[core.ID]int{}
	for _, e := range events {
		if readsBack && e.in.readLate(e.out) && late[e.id] < 64 {
			late[e.id]++
			e.in.number = late[e.id]
			early := e.in
			early.early = true
			parts[e.id] = append(parts[e.id], porcupine.Operation{
				ClientId: e.client, Input: early, Output: answer{unknown: true}, Call: e.call, Return: e.ret,
			})
		}
		o := porcupine.Operation{ClientId: e.client, Input: e.in, Output: e.out, Call: e.call, Return: e.ret}
		if e.out.unknown {
			o.Return = end + 1
		}
		parts[e.id] = append(parts[e.id], o)
	}
	return parts
}

// beginning cuts a history after the first answer that no order explains. Calls
// that weren't over by then are of unknown outcome, which can make the check of a
// part longer than that of the whole: one that isn't over in time proves nothing,
// and the cut is later.
func beginning(model porcupine.Model, history []porcupine.Operation, limit time.Duration) []porcupine.Operation {
	until := func(tick int64) []porcupine.Operation {
		var cut []porcupine.Operation
		for _, o := range history {
			if o.Call > tick {
				continue
			}
			if o.Return > tick {
				o.Return, o.Output = tick+1, answer{unknown: true}
			}
			cut = append(cut, o)
		}
		return cut
	}
	last := slices.MaxFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) }).Return
	end := time.Now().Add(limit)
	return until(int64(sort.Search(int(last), func(tick int) bool {
		left := time.Until(end)
		return left > 0 && porcupine.CheckOperationsTimeout(model, until(int64(tick)), left) == porcupine.Illegal
	})))
}

package history

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
)

// The rule of a concurrent test, as the table of backends and rules has it.
const linearRule = "For each id there is one order of all concurrent calls, lost replies among them, that explains every answer."

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
//
// What the clients call follows from the seed, what comes of it doesn't.
func TestLinearizable(t *testing.T, store conformance.Store, o Options) {
	t.Helper()
	t.Run("history/linearizable", func(t *testing.T) {
		t.Attr("dueclaim.group", "history")
		t.Attr("dueclaim.rule", linearRule)
		start := seed()
		t.Logf("%d concurrent histories, seed %d (the same calls again: -rapid.seed=%d)", o.histories(true), start, start)
		found := searchConcurrent(t, store, start, o)
		if found.broken == nil {
			t.Logf("%d calls of %d clients about %d ids, %d of them of unknown outcome; %d histories of an id too tangled to check",
				found.calls, clients, ids, found.unknown, found.undecided)
			return
		}
		t.Error(found.broken.text)
		found.broken.draw(t)
	})
}

// ids of a concurrent history.
const ids = 3

// concurrency is what came of checking concurrent histories.
type concurrency struct {
	played, calls, unknown, undecided int
	broken                            *contradiction
}

// contradiction is the history of an id that no order explains.
type contradiction struct {
	text  string
	model porcupine.Model
	info  porcupine.LinearizationInfo
}

func searchConcurrent(t *testing.T, store conformance.Store, seed uint64, o Options) concurrency {
	var found concurrency
	model := rules{keeps: store.Provides.KeepsFinished}.model()
	for n := range o.histories(true) {
		found.played = n + 1
		events := playTogether(t, store, seed+uint64(n), o.steps())
		for id, history := range byID(events, o.ReadsBack) {
			for _, x := range history {
				if x.Input.(op).early {
					continue
				}
				found.calls++
				if x.Output.(answer).unknown {
					found.unknown++
				}
			}
			switch porcupine.CheckOperationsTimeout(model, history, checking) {
			case porcupine.Ok:
			case porcupine.Unknown:
				found.undecided++
			default:
				history = beginning(model, history)
				_, info := porcupine.CheckOperationsVerbose(model, history, 0)
				text := explain(model, id, history, info)
				text += fmt.Sprintf("\nIt was history %d of the run. To make the same calls again, as the first ones (whether they meet the same way is up to chance):\n  go test -run '%s' -rapid.seed=%d",
					n+1, pattern(t.Name()), seed+uint64(n))
				found.broken = &contradiction{text, model, info}
				return found
			}
		}
	}
	return found
}

// playTogether runs one history on a fresh store and returns what its clients saw.
func playTogether(t *testing.T, store conformance.Store, seed uint64, steps int) []event {
	first := store.New(t)
	on := []core.Store{first}
	for len(on) < handles && store.Peer != nil {
		on = append(on, store.Peer(t, first))
	}
	random := func(stream int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(stream))) }
	s := &scene{}
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
			c.play(t.Context(), max(1, steps*3/2/clients))
		})
	}
	close(begin)
	together.Wait()
	var all []event
	for _, c := range team {
		all = append(all, c.events...)
	}
	return all
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
// that weren't over by then are of unknown outcome.
func beginning(model porcupine.Model, history []porcupine.Operation) []porcupine.Operation {
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
	return until(int64(sort.Search(int(last), func(tick int) bool {
		return !porcupine.CheckOperations(model, until(int64(tick)))
	})))
}

// draw writes porcupine's picture of the history, where go test keeps it.
func (c *contradiction) draw(t *testing.T) {
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		t.Log("go test -artifacts keeps a picture of such a history")
		return
	}
	path := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(c.model, c.info, path); err != nil {
		t.Logf("no picture of the history: %v", err)
		return
	}
	t.Logf("a picture of the history: %s", path)
}

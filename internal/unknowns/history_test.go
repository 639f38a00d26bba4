package unknowns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/history"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// impatient gives each call a deadline, as core does: without one a call that
// stalls would stall for ever.
type impatient struct{ core.Store }

const patience = time.Second

func within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}

func (s impatient) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	return within(ctx, func(ctx context.Context) error { return s.Store.Insert(ctx, call, tasks) })
}

func (s impatient) Claim(ctx context.Context, ids []core.ID, lease core.Lease) (got []core.Claimed, err error) {
	err = within(ctx, func(ctx context.Context) (err error) { got, err = s.Store.Claim(ctx, ids, lease); return err })
	return got, err
}

func (s impatient) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	return within(ctx, func(ctx context.Context) error { return s.Store.Extend(ctx, grants, until) })
}

func (s impatient) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	return within(ctx, func(ctx context.Context) error { return s.Store.Settle(ctx, now, settlements) })
}

func (s impatient) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) (got []core.Entry, err error) {
	err = within(ctx, func(ctx context.Context) (err error) {
		got, err = s.Store.Waiting(ctx, now, after, before, limit)
		return err
	})
	return got, err
}

func (s impatient) Cancel(ctx context.Context, call core.Call, ids []core.ID) (got []core.Fate, err error) {
	err = within(ctx, func(ctx context.Context) (err error) { got, err = s.Store.Cancel(ctx, call, ids); return err })
	return got, err
}

func (s impatient) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	return within(ctx, func(ctx context.Context) error { return s.Store.Reschedule(ctx, call, moves) })
}

func histories() int {
	if stress() {
		return 100
	}
	return 3
}

// mayFail is more than a quarter where there are few calls of a kind: about a tenth is
// broken on purpose.
func mayFail() float64 {
	if stress() {
		return 0
	}
	return 0.5
}

// breaker breaks one exchange in every so many, all kinds in turn.
type breaker struct {
	mu          sync.Mutex
	random      *rand.Rand
	every       int
	seen, place int // of the exchanges, and which of each lot to break
	broken      int
	refusals    []wireproxy.Fault
}

func (b *breaker) choose([]byte) wireproxy.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.seen % b.every
	if b.seen++; at == 0 {
		b.place = b.random.IntN(b.every)
	}
	if at != b.place {
		return wireproxy.Fault{}
	}
	cuts := wireproxy.Cuts()
	f := wireproxy.Fault{Cut: cuts[b.broken%len(cuts)]}
	if f.Cut == wireproxy.ErrorReply {
		f = b.refusals[b.broken/len(cuts)%len(b.refusals)]
	}
	b.broken++
	return f
}

// Concurrent calls through a line that breaks all the time: there is one order of
// them, those whose outcome nobody learned among them, that explains every answer.
func TestConcurrentCallsOverABreakingLineAreLinearizable(t *testing.T) {
	for _, c := range configurations {
		if strings.Contains(c.name, "simple") || strings.Contains(c.name, "interpolate") {
			continue // the same statements as another's, as text
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Attr("dueclaim.backend", c.backend)
			_, random := seeded(t)
			p := c.open(t)
			b := &breaker{random: random, every: 20, refusals: p.refusals}
			p.proxy.Each(b.choose)
			queues := 0
			stores := map[core.Store]string{}
			handle := func(t *testing.T, queue string) core.Store {
				s := &impatient{p.store(t, queue)}
				stores[s] = queue
				return s
			}
			history.TestLinearizable(t, conformance.Store{
				New: func(t *testing.T) core.Store {
					queues++
					return handle(t, fmt.Sprintf("queue %d", queues))
				},
				Peer:     func(t *testing.T, first core.Store) core.Store { return handle(t, stores[first]) },
				Provides: conformance.StoreProvides{KeepsFinished: true},
			}, history.Options{Histories: histories(), ReadsBack: c.readsBack, MayFail: mayFail()})
			var kinds []string
			for _, cut := range wireproxy.Cuts() {
				n := p.proxy.Injected()[cut]
				assert.NotZero(t, n, "%s was never injected", cut)
				kinds = append(kinds, fmt.Sprintf("%s %d", cut, n))
			}
			t.Attr("dueclaim.figure", fmt.Sprintf("linearizable over a breaking line, %s: %d histories, %d exchanges; %s",
				c.name, histories(), p.proxy.Exchanges(), strings.Join(kinds, ", ")))
		})
	}
}

// SQLite has no line that could break: calls are lost before it, and answers after.
func TestConcurrentCallsThatGetLostBeforeSQLiteAreLinearizable(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	seed, _ := seeded(t)
	path := t.TempDir() + "/tasks.db"
	often := 0.12 // so that each kind comes up in a few histories
	if stress() {
		often = 0.04
	}
	faults := conformance.NewFaults(conformance.FaultOptions{Seed: seed, Fail: often, Lose: often, Delay: 0.1, MaxDelay: time.Millisecond})
	queues := 0
	stores := map[core.Store]string{}
	handle := func(t *testing.T, queue string) core.Store {
		inner, err := sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{Queue: queue})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, inner.Close()) })
		require.NoError(t, inner.Migrate(t.Context()))
		s := conformance.FaultyStore(inner, faults)
		stores[s] = queue
		return s
	}
	history.TestLinearizable(t, conformance.Store{
		New: func(t *testing.T) core.Store {
			queues++
			return handle(t, fmt.Sprintf("queue %d", queues))
		},
		Peer:     func(t *testing.T, first core.Store) core.Store { return handle(t, stores[first]) },
		Provides: conformance.StoreProvides{KeepsFinished: true},
	}, history.Options{Histories: histories(), MayFail: mayFail()})
	injected := faults.Injected()
	for _, kind := range []conformance.Fault{conformance.FaultFail, conformance.FaultLose, conformance.FaultDelay} {
		assert.NotZero(t, injected[kind], "%s was never injected", kind)
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("linearizable with lost calls and answers, sqlite: %d histories; injected %v", histories(), injected))
}

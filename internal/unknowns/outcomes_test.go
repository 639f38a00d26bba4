package unknowns

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
)

// base is the made-up present.
var base = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func at(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }

// trial is one call that is broken once, on a task of its own.
type trial struct {
	store core.Store
	id    core.ID
	grant core.Grant    // of the task, where it is running before
	got   *core.Claimed // what Claim answered
}

func (x *trial) insert(ctx context.Context) error {
	return x.store.Insert(ctx, core.Call{ID: "c-" + string(x.id), Now: base}, []core.Task{{ID: x.id, Kind: "mail", Payload: []byte("p"), Due: base}})
}

func (x *trial) claim(ctx context.Context) error {
	got, err := x.store.Claim(ctx, []core.ID{x.id}, core.Lease{Holder: "h-" + string(x.id), Now: at(1), DueBy: at(1), Until: at(30_001)})
	if err == nil {
		x.got = &got[0]
		x.grant = got[0].Grant
	}
	return err
}

func (x *trial) extend(ctx context.Context) error {
	return x.store.Extend(ctx, []core.Grant{x.grant}, at(60_000))
}

func (x *trial) settle(outcome core.Outcome, due time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.store.Settle(ctx, at(5), []core.Settlement{{Grant: x.grant, Outcome: outcome, Due: due, Err: "e"}})
	}
}

// operation is a kind of call, and what the row must be after it.
type operation struct {
	name string
	// before brings the task to where the call finds it.
	before []func(*trial, context.Context) error
	call   func(*trial) func(context.Context) error
	want   row
	skip   int // exchanges of the call to let pass before the fault
}

func (p *place) operations(readsBack bool) []operation {
	token, holder := int64(1), "h"
	claimed := row{Rows: 1, Changes: 2, Status: "running", Holder: holder, Token: token, Attempts: 1, Due: base.UnixMilli(), Lease: at(30_001).UnixMilli()}
	extended, done, retried := claimed, claimed, claimed
	extended.Changes, extended.Lease = 3, at(60_000).UnixMilli()
	done.Changes, done.Status, done.Due, done.Lease = 3, "done", 0, 0
	retried.Changes, retried.Status, retried.Due, retried.Lease = 3, "pending", at(90_000).UnixMilli(), 0
	insert, claim := (*trial).insert, (*trial).claim
	list := []operation{
		{"insert", nil, func(x *trial) func(context.Context) error { return x.insert },
			row{Rows: 1, Changes: 1, Status: "pending", Due: base.UnixMilli()}, 0},
		{"claim", []func(*trial, context.Context) error{insert},
			func(x *trial) func(context.Context) error { return x.claim }, claimed, 0},
		{"extend", []func(*trial, context.Context) error{insert, claim},
			func(x *trial) func(context.Context) error { return x.extend }, extended, 0},
		{"settle", []func(*trial, context.Context) error{insert, claim},
			func(x *trial) func(context.Context) error { return x.settle(core.Done, time.Time{}) }, done, 0},
		{"retry", []func(*trial, context.Context) error{insert, claim},
			func(x *trial) func(context.Context) error { return x.settle(core.Retry, at(90_000)) }, retried, 0},
	}
	if readsBack {
		list = append(list, operation{"claim, at its read-back", []func(*trial, context.Context) error{insert},
			func(x *trial) func(context.Context) error { return x.claim }, claimed, 1})
	}
	return list
}

// tally is what came of the first tries.
type tally struct {
	mu                      sync.Mutex
	calls, happened, notYet int
	injected                map[wireproxy.Cut]int
}

// A call of which any part was cut off, repeated with the same arguments, is
// answered as the database has it, and its effect is there once.
func TestACallCutAnywhereHasItsEffectOnce(t *testing.T) {
	rounds := 0
	if stress() {
		rounds = 5
	}
	sum := &tally{injected: map[wireproxy.Cut]int{}}
	t.Run("on", func(t *testing.T) {
		for i, c := range configurations {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				t.Attr("dueclaim.backend", c.backend)
				p := c.open(t)
				p.counting(t)
				playAll(t, p, c.readsBack, rounds, i, sum)
			})
		}
	})
	var kinds []string
	for _, cut := range wireproxy.Cuts() {
		assert.NotZero(t, sum.injected[cut], "%s was never injected", cut)
		kinds = append(kinds, fmt.Sprintf("%s %d", cut, sum.injected[cut]))
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("unknown outcomes: %d calls in %d configurations, %d had happened, %d had not; %s",
		sum.calls, len(configurations), sum.happened, sum.notYet, strings.Join(kinds, ", ")))
}

// playAll plays every operation with every cut; where rounds is 0 every other one,
// others in the next configuration.
func playAll(t *testing.T, p *place, readsBack bool, rounds, number int, sum *tally) {
	store := p.store(t, "default")
	late := map[core.ID]row{}
	for round := range max(1, rounds) {
		for i, o := range p.operations(readsBack) {
			for _, cut := range wireproxy.Cuts() {
				if rounds == 0 && (int(cut)+i+number)%2 > 0 {
					continue
				}
				id := core.ID(fmt.Sprintf("%s-%d-%d", strings.NewReplacer(" ", "", ",", "", "-", "").Replace(o.name), cut, round))
				fault := wireproxy.Fault{Cut: cut, Skip: o.skip}
				if cut == wireproxy.ErrorReply {
					refusal := p.refusals[(round+len(o.name))%len(p.refusals)]
					fault.Code, fault.Text = refusal.Code, refusal.Text
				}
				want := o.want
				if want.Holder != "" {
					want.Holder = "h-" + string(id)
				}
				t.Run(fmt.Sprintf("%s/%s/%d", o.name, cut, round), func(t *testing.T) {
					play(t, p, store, o, id, fault, want, sum)
					late[id] = want
				})
			}
		}
	}
	for id, want := range late {
		assert.Equal(t, want, p.row(t, id), "%s, a while later", id)
	}
	sum.mu.Lock()
	defer sum.mu.Unlock()
	for cut, n := range p.proxy.Injected() {
		sum.injected[cut] += n
	}
}

func play(t *testing.T, p *place, store core.Store, o operation, id core.ID, fault wireproxy.Fault, want row, sum *tally) {
	x := &trial{store: store, id: id}
	for _, step := range o.before {
		require.NoError(t, step(x, t.Context()))
		p.row(t, id) // its first token
	}
	x.got = nil
	changed := want.Changes - 1
	if len(o.before) > 0 {
		require.Equal(t, changed, p.changes(t, id), "before")
	}
	_, err := store.(core.TimeSource).Now(t.Context())
	require.NoError(t, err, "a connection stands")

	limit := 20 * time.Second
	if fault.Cut == wireproxy.Stall {
		limit = 150 * time.Millisecond
	}
	p.proxy.Arm(fault)
	err = repeated(t, limit, func(first error) {
		require.Error(t, first, "somebody hides that the outcome is unknown")
		require.False(t, answered(first), "%v is taken for an answer", first)
		happened := p.changes(t, id) - changed
		sum.mu.Lock()
		defer sum.mu.Unlock()
		sum.calls++
		if happened > 0 {
			sum.happened++
		} else {
			sum.notYet++
		}
		switch fault.Cut {
		case wireproxy.AfterRequest:
		case wireproxy.BeforeRequest, wireproxy.HalfRequest:
			require.Equal(t, o.skip, happened, "nothing has happened but for what came before")
		default:
			require.Equal(t, 1, happened, "it has happened")
		}
	}, o.call(x))
	require.NoError(t, err)
	require.Zero(t, p.proxy.Disarm(), "the fault came")
	require.Equal(t, want, p.row(t, id), "the row, and how often it changed")
	if x.got != nil {
		g := core.Grant{ID: id, Token: p.first[id] + want.Token, Holder: want.Holder}
		assert.Equal(t, core.Claimed{
			ID: id, Verdict: core.Granted, At: time.UnixMilli(want.Lease).UTC(), NotBefore: base, Grant: g, Attempt: want.Attempts,
			Task: core.Task{ID: id, Kind: "mail", Payload: []byte("p"), Due: base},
		}, withoutMeta(*x.got))
	}
	require.NoError(t, o.call(x)(t.Context()), "once more")
	require.Equal(t, want, p.row(t, id), "after once more")
}

// withoutMeta leaves out whether no meta is nil or empty, which is the same.
func withoutMeta(c core.Claimed) core.Claimed {
	if len(c.Task.Meta) == 0 {
		c.Task.Meta = nil
	}
	return c
}

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// scene is what the clients of one concurrent history share.
type scene struct {
	ids   []core.ID
	clock atomic.Int64 // counts calls and returns
	names atomic.Int64
	lost  atomic.Int64 // replies that may still get lost

	mu     sync.Mutex
	broken string // what ends the history, "" for nothing
	last   error  // of a call that failed
}

// fail ends the history: what its clients saw is not for the checker.
func (s *scene) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = cmp.Or(s.broken, fmt.Sprintf(format, args...))
}

func (s *scene) failed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// An unknown outcome multiplies what the checker has to try.
const mostLost = 8

// event is what a client saw of one id.
type event struct {
	id        core.ID
	client    int
	in        op
	out       answer
	call, ret int64 // ret is 0 where the outcome is unknown: it may take effect ever after
	failed    bool  // the outcome is unknown, and not because the reply was lost on purpose
}

// client makes one call after the other, as a worker and a producer would.
type client struct {
	*scene
	number int
	store  core.Store
	*rand.Rand
	grants []core.Grant
	events []event
}

var errLost = errors.New("the reply was lost on purpose")

func (c *client) play(ctx context.Context, calls int) {
	defer func() {
		if p := recover(); p != nil {
			c.fail("client %d: %s", c.number, panicked(p))
		}
	}()
	for range calls {
		if c.failed() != "" {
			return
		}
		switch n := c.IntN(100); {
		case n < 35:
			c.claim(ctx)
		case n < 48:
			c.extend(ctx)
		case n < 70:
			c.settle(ctx)
		case n < 79:
			c.cancel(ctx)
		case n < 88:
			c.insert(ctx, c.some())
		case n < 95:
			c.reschedule(ctx)
		default:
			c.waiting(ctx)
		}
		runtime.Gosched()
	}
}

// do makes a call about ids, the i-th of which is to have the effect ops[i], and
// notes what came of it. call returns the answers; a *core.BatchError replaces some.
// An unknown outcome is followed by a repeat with the same arguments, or by nothing.
func (c *client) do(ids []core.ID, ops []op, call func() ([]answer, error)) []answer {
	for {
		fate := c.IntN(12) // 0: the call gets lost, 1: the reply
		if fate < 2 && c.lost.Add(-1) < 0 {
			fate = 2
		}
		var answers []answer
		err := errLost
		start := c.clock.Add(1)
		if fate != 0 {
			answers, err = call()
		}
		end := c.clock.Add(1)
		var batch *core.BatchError
		switch {
		case fate < 2:
			err = errLost
		case errors.As(err, &batch):
			for _, item := range batch.Items {
				if item.Index < 0 || item.Index >= len(ids) || item.ID != ids[item.Index] {
					c.fail("client %d: the *core.BatchError of %s names item %d, id %s, but the items are %s",
						c.number, ops[0].kind, item.Index, name(item.ID), list(ids, showID))
					return nil
				}
				answers[item.Index] = answer{refused: sentinel(item.Err)}
			}
			err = nil
		}
		for i, id := range ids {
			e := event{id: id, client: c.number, in: ops[i], call: start}
			e.in.items, e.failed = len(ids), err != nil && fate >= 2
			if err != nil {
				e.out.unknown = true
			} else {
				e.out, e.ret = answers[i], end
			}
			c.events = append(c.events, e)
		}
		if err == nil {
			return answers
		}
		if fate >= 2 {
			c.mu.Lock()
			c.last = err
			c.mu.Unlock()
		}
		if c.IntN(3) == 0 { // the client dies, another takes its place
			return nil
		}
		time.Sleep(time.Duration(c.IntN(1000)) * time.Microsecond) // back off, as core does
	}
}

// some returns one or two ids.
func (c *client) some() []core.ID {
	ids := slices.Clone(c.ids)
	c.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:1+c.IntN(2)]
}

// The present of the concurrent histories, and the seconds after it at which
// leases begin and end. Instants are made up: a claim as of a later one takes over
// the leases that end before, whenever it comes.
var present = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func (c *client) when(seconds int) time.Time {
	return present.Add(time.Duration(c.IntN(seconds+1)) * time.Second)
}

func (c *client) unique(prefix string) string { return fmt.Sprint(prefix, c.names.Add(1)) }

func (c *client) insert(ctx context.Context, ids []core.ID) {
	call := core.Call{ID: c.unique("c"), Now: present.Add(time.Duration(c.IntN(24)) * time.Hour)} // tokens rise whatever that is
	ops, tasks := make([]op, len(ids)), make([]core.Task, len(ids))
	for i, id := range ids {
		tasks[i] = core.Task{ID: id, Kind: "mail", Due: c.when(1)}
		ops[i] = op{kind: inserts, call: call.ID, now: call.Now, due: tasks[i].Due}
	}
	c.do(ids, ops, func() ([]answer, error) { return make([]answer, len(ids)), c.store.Insert(ctx, call, tasks) })
}

func (c *client) claim(ctx context.Context) {
	ids, now := c.some(), c.when(4)
	lease := core.Lease{Holder: c.unique("h"), Now: now, DueBy: now, Until: now.Add(time.Duration(1+c.IntN(3)) * time.Second)}
	answers := c.do(ids, slices.Repeat([]op{{kind: claims, lease: lease}}, len(ids)), func() ([]answer, error) {
		got, err := c.store.Claim(ctx, ids, lease)
		answers := make([]answer, len(ids))
		for i := range min(len(got), len(ids)) {
			answers[i] = claimAnswer(got[i])
		}
		return answers, err
	})
	for i, a := range answers {
		if a.verdict == core.Granted {
			c.grants = append(c.grants, core.Grant{ID: ids[i], Token: a.token, Holder: lease.Holder})
		}
	}
}

func claimAnswer(c core.Claimed) answer {
	switch c.Verdict {
	case core.Granted:
		return answer{verdict: c.Verdict, at: c.At, token: c.Grant.Token, attempt: c.Attempt, crashes: c.Crashes, planned: c.Task.Due}
	case core.Held, core.NotDue:
		return answer{verdict: c.Verdict, at: c.At}
	default: // of these verdicts the contract gives no At
		return answer{verdict: c.Verdict}
	}
}

// held returns one or two of the grants that the client was given, of different
// ids and mostly the newest: it can't know which of them were taken over.
func (c *client) held() []core.Grant {
	var held []core.Grant
	for _, g := range slices.Backward(c.grants) {
		known := slices.ContainsFunc(held, func(h core.Grant) bool { return h.ID == g.ID })
		if !known && c.IntN(4) > 0 && len(held) < 1+c.IntN(2) {
			held = append(held, g)
		}
	}
	return held
}

func (c *client) extend(ctx context.Context) {
	grants, until := c.held(), c.when(6)
	ids, ops := make([]core.ID, len(grants)), make([]op, len(grants))
	for i, g := range grants {
		ids[i], ops[i] = g.ID, op{kind: extends, grant: g, until: until}
	}
	if len(grants) > 0 {
		c.do(ids, ops, func() ([]answer, error) { return make([]answer, len(ids)), c.store.Extend(ctx, grants, until) })
	}
}

func (c *client) settle(ctx context.Context) {
	grants, now := c.held(), c.when(4)
	ids, ops, settlements := make([]core.ID, len(grants)), make([]op, len(grants)), make([]core.Settlement, len(grants))
	for i, g := range grants {
		st := core.Settlement{Grant: g, Outcome: [...]core.Outcome{core.Done, core.Retry, core.Released, core.Retry, core.DeadLetter}[c.IntN(5)]}
		if st.Outcome == core.Retry || st.Outcome == core.Released {
			st.Due = c.when(4)
		}
		ids[i], ops[i], settlements[i] = g.ID, op{kind: settles, grant: g, outcome: st.Outcome, now: now, due: st.Due}, st
	}
	if len(grants) > 0 {
		c.do(ids, ops, func() ([]answer, error) { return make([]answer, len(ids)), c.store.Settle(ctx, now, settlements) })
	}
}

func (c *client) cancel(ctx context.Context) {
	ids, now := c.some(), c.when(4)
	c.do(ids, slices.Repeat([]op{{kind: cancels, now: now}}, len(ids)), func() ([]answer, error) {
		fates, err := c.store.Cancel(ctx, core.Call{Now: now}, ids)
		answers := make([]answer, len(ids))
		for i := range min(len(fates), len(ids)) {
			answers[i].fate = fates[i]
		}
		return answers, err
	})
}

func (c *client) reschedule(ctx context.Context) {
	ids := c.some()
	ops, moves := make([]op, len(ids)), make([]core.Move, len(ids))
	for i, id := range ids {
		moves[i] = core.Move{ID: id, To: c.when(2)}
		if c.IntN(2) == 0 {
			moves[i].From = c.when(2)
		}
		ops[i] = op{kind: reschedules, from: moves[i].From, due: moves[i].To}
	}
	c.do(ids, ops, func() ([]answer, error) {
		return make([]answer, len(ids)), c.store.Reschedule(ctx, core.Call{Now: present}, moves)
	})
}

// waiting notes for each id whether it was among the rows.
func (c *client) waiting(ctx context.Context) {
	now := c.when(6)
	c.do(c.ids, slices.Repeat([]op{{kind: waits, now: now}}, len(c.ids)), func() ([]answer, error) {
		entries, err := c.store.Waiting(ctx, now, core.Entry{}, endOfTime, 1_000)
		answers := make([]answer, len(c.ids))
		for i, id := range c.ids {
			if at := slices.IndexFunc(entries, func(e core.Entry) bool { return e.ID == id }); at >= 0 {
				answers[i] = answer{waits: true, at: entries[at].Due}
			}
		}
		return answers, err
	})
}

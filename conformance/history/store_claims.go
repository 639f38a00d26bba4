package history

import (
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"pgregory.net/rapid"
)

func (s *storeRun) claimNew(t *rapid.T) {
	at, c := s.at(t), claimCall{ids: some(t, "ids", s.ids, rapid.ID), lease: core.Lease{Holder: s.unique("h", "H"), Now: s.now(t)}}
	c.lease.DueBy = c.lease.Now
	if chance(t, "due by another time", 2) {
		c.lease.DueBy = s.due(t)
	}
	c.lease.Until = s.after(t, c.lease.Now)
	if at.ctx.Err() == nil {
		s.claims = append(s.claims, c)
	}
	s.do(func(s *storeRun) { s.claim(at, c) })
}

// claimAgain repeats a claim, with the same arguments, whatever came in between.
func (s *storeRun) claimAgain(t *rapid.T) {
	if len(s.claims) == 0 {
		return
	}
	at, c := s.at(t), pick(t, "claim", s.claims)
	s.do(func(s *storeRun) { s.claim(at, c) })
}

func (s *storeRun) claim(at place, c claimCall) {
	ctx := at.ctx
	s.step("%s: Claim%s(%s; %s)", at, showDone(ctx), list(c.ids, showID), showLease(c.lease))
	arg := slices.Clone(c.ids)
	got, err := s.handles[at.handle].Claim(ctx, arg, c.lease)
	unchanged(s.record, c.ids, arg, showID)
	if s.refused(ctx, err, len(c.ids)) {
		return
	}
	s.mustNot(err)
	want, _ := s.right.Claim(ctx, c.ids, c.lease)
	same(s.record, "verdicts", want, got, showClaimed)
	for i := range want {
		if want[i].Verdict == core.Granted {
			s.granted(want[i].Grant, got[i].Grant)
			scribble(got[i].Task)
		}
	}
}

// granted checks the token: a repeat finds the one it was given, a new grant has a
// higher one than all before.
func (s *storeRun) granted(right, tested core.Grant) {
	for _, p := range s.grants {
		if p.right == right {
			if p.tested != tested {
				s.fail("the repeat found the grant %s; the first call was given %s", showGrant(tested), showGrant(p.tested))
			}
			return
		}
	}
	if high, any := s.highest[right.ID]; any && tested.Token <= high {
		s.fail("the new grant is %s; want a token above %d, which an earlier grant of the id has", showGrant(tested), high)
	}
	s.highest[right.ID] = tested.Token
	s.rescheduled[right.ID] = false
	p := pair{right, tested, nth{id: right.ID, holder: right.Holder}}
	for _, g := range s.grants {
		if g.nth.id == right.ID && g.nth.holder == right.Holder {
			p.nth.n++
		}
	}
	s.grants = append(s.grants, p)
}

// someGrants chooses grants of different ids: mostly the newest of each, also
// older ones, and such as were never given. Made-up ones are put together from parts
// that were, which means the same to both stores.
func (s *storeRun) someGrants(t *rapid.T) []ref {
	newest := map[core.ID]pair{}
	for _, g := range s.grants {
		newest[g.right.ID] = g
	}
	choice := slices.Clone(s.grants)
	for _, g := range s.grants {
		if newest[g.right.ID] == g {
			choice = append(choice, g, g)
		}
	}
	var refs []ref
	for _, g := range some(t, "grants", choice, func(p pair) core.ID { return p.right.ID }) {
		r := ref{g.nth, g.right.Holder}
		switch rapid.IntRange(0, 9).Draw(t, "made up") {
		case 6, 7:
			of := slices.DeleteFunc(slices.Clone(s.grants), func(p pair) bool { return p.right.ID != g.right.ID })
			r.token = pick(t, "token", of).nth
		case 8:
			r.holder = swapCase(g.right.Holder)
		case 9:
			r.holder = pick(t, "holder", s.grants).right.Holder
		}
		refs = append(refs, r)
	}
	return refs
}

func swapCase(s string) string {
	if lower := strings.ToLower(s); lower != s {
		return lower
	}
	return strings.ToUpper(s)
}

func (s *storeRun) extend(t *rapid.T) {
	at, refs, until := s.at(t), s.someGrants(t), s.due(t)
	s.do(func(s *storeRun) { s.extendAll(at, refs, until) })
}

func (s *storeRun) extendAll(at place, refs []ref, until time.Time) {
	var right, tested []core.Grant
	for _, r := range refs {
		if p, ok := s.resolve(r); ok {
			right, tested = append(right, p.right), append(tested, p.tested)
		}
	}
	ctx := at.ctx
	s.step("%s: Extend%s(%s, until %s)", at, showDone(ctx), list(tested, showGrant), stamp(until))
	arg := slices.Clone(tested)
	got := s.handles[at.handle].Extend(ctx, arg, until)
	unchanged(s.record, tested, arg, showGrant)
	if !s.refused(ctx, got, len(tested)) {
		s.sameRefusals(s.right.Extend(ctx, right, until), got)
	}
}

type settlement struct {
	ref
	outcome core.Outcome
	due     time.Time
}

func (s *storeRun) settle(t *rapid.T) {
	at := s.at(t)
	var items []settlement
	for _, r := range s.someGrants(t) {
		x := settlement{ref: r, outcome: core.Outcome(rapid.IntRange(int(core.Done), int(core.Released)).Draw(t, "outcome"))}
		if x.outcome == core.Retry || x.outcome == core.Released {
			x.due = s.due(t)
		}
		items = append(items, x)
	}
	now := s.now(t)
	s.do(func(s *storeRun) { s.settleAll(at, now, items) })
}

func (s *storeRun) settleAll(at place, now time.Time, items []settlement) {
	var right, tested []core.Settlement
	for _, x := range items {
		p, ok := s.resolve(x.ref)
		if !ok {
			continue
		}
		st := core.Settlement{Outcome: x.outcome, Due: x.due}
		if x.outcome == core.Retry || x.outcome == core.DeadLetter {
			st.Err = "it's \"no\" good\\ \u00e9"
		}
		st.Grant = p.right
		right = append(right, st)
		st.Grant = p.tested
		tested = append(tested, st)
	}
	ctx := at.ctx
	s.step("%s: Settle%s(now %s, %s)", at, showDone(ctx), stamp(now), list(tested, showSettlement))
	arg := slices.Clone(tested)
	got := s.handles[at.handle].Settle(ctx, now, arg)
	unchanged(s.record, tested, arg, showSettlement)
	if s.refused(ctx, got, len(tested)) {
		return
	}
	want := s.right.Settle(ctx, now, right)
	s.sameRefusals(want, s.excused(right, want, got))
}

// excused is got without the refusals that the contract allows. Free: whether a
// repeat still finds its task settled after a Reschedule changed it; either way it
// changes nothing.
func (s *storeRun) excused(items []core.Settlement, want, got error) error {
	g, ok := showItems(got)
	if !ok || len(g) == 0 {
		return got
	}
	w, _ := showItems(want)
	return core.NewBatchError(slices.DeleteFunc(slices.Clone(g), func(x core.ItemError) bool {
		expected := slices.ContainsFunc(w, func(y core.ItemError) bool { return y.Index == x.Index })
		known := x.Index >= 0 && x.Index < len(items)
		return !expected && known && s.rescheduled[items[x.Index].Grant.ID] && sentinel(x.Err) == sentinel(core.ErrLeaseLost)
	}))
}

func (s *storeRun) waiting(t *rapid.T) {
	at, now, before, limit := s.at(t), s.now(t), s.due(t), rapid.IntRange(1, 7).Draw(t, "limit")
	var after core.Entry
	if chance(t, "after an entry", 2) {
		after = core.Entry{ID: pick(t, "after id", s.ids), Due: s.due(t)}
	}
	s.do(func(s *storeRun) { s.compareWaiting(at, now, after, before, limit) })
}

func (s *storeRun) compareWaiting(at place, now time.Time, after core.Entry, before time.Time, limit int) {
	ctx := at.ctx
	s.step("%s: Waiting%s(now %s, after %s, before %s, %d)", at, showDone(ctx), stamp(now), showEntry(after), stamp(before), limit)
	got, err := s.handles[at.handle].Waiting(ctx, now, after, before, limit)
	if !s.refused(ctx, err, 1) {
		s.mustNot(err)
		want, _ := s.right.Waiting(ctx, now, after, before, limit)
		same(s.record, "waiting rows", want, got, showEntry)
	}
}

// pages reads all that waits, a page after the other.
func (s *storeRun) pages(t *rapid.T) {
	at, now, before, page := place{rapid.IntRange(0, 1).Draw(t, "handle"), s.t.Context()}, s.now(t), endOfTime, rapid.IntRange(1, 4).Draw(t, "page")
	if chance(t, "bounded", 2) {
		before = s.due(t)
	}
	s.do(func(s *storeRun) { s.comparePages(at, now, before, page) })
}

func (s *storeRun) comparePages(at place, now, before time.Time, page int) {
	s.step("%s: pages of %d of Waiting(now %s, before %s)", at, page, stamp(now), stamp(before))
	ctx := at.ctx
	want, _ := s.right.Waiting(ctx, now, core.Entry{}, before, 1_000)
	var got []core.Entry
	for after := (core.Entry{}); len(got) <= len(want); after = got[len(got)-1] {
		entries, err := s.handles[at.handle].Waiting(ctx, now, after, before, page)
		s.mustNot(err)
		if len(entries) > page {
			s.fail("got a page of %d rows, want at most %d", len(entries), page)
		}
		got = append(got, entries...)
		if len(entries) < page {
			break
		}
	}
	same(s.record, "waiting rows, from all pages", want, got, showEntry)
}

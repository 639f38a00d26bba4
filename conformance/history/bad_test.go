package history

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/internal/naive"
	"github.com/dueclaim/dueclaim/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// odd is a store of which some calls don't come to an answer.
type odd struct {
	core.Store
	before func(call kind) error
}

func (s odd) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	if err := s.before(inserts); err != nil {
		return err
	}
	return s.Store.Insert(ctx, call, tasks)
}

func (s odd) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	if err := s.before(claims); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, ids, lease)
}

func (s odd) Cancel(ctx context.Context, call core.Call, ids []core.ID) ([]core.Fate, error) {
	if err := s.before(cancels); err != nil {
		return nil, err
	}
	return s.Store.Cancel(ctx, call, ids)
}

func (s odd) Settle(ctx context.Context, now time.Time, settlements []core.Settlement) error {
	if err := s.before(settles); err != nil {
		return err
	}
	return s.Store.Settle(ctx, now, settlements)
}

func (s odd) Extend(ctx context.Context, grants []core.Grant, until time.Time) error {
	if err := s.before(extends); err != nil {
		return err
	}
	return s.Store.Extend(ctx, grants, until)
}

func (s odd) Reschedule(ctx context.Context, call core.Call, moves []core.Move) error {
	if err := s.before(reschedules); err != nil {
		return err
	}
	return s.Store.Reschedule(ctx, call, moves)
}

func (s odd) Waiting(ctx context.Context, now time.Time, after core.Entry, before time.Time, limit int) ([]core.Entry, error) {
	if err := s.before(waits); err != nil {
		return nil, err
	}
	return s.Store.Waiting(ctx, now, after, before, limit)
}

func oddStore(before func(call kind) error) conformance.Store {
	return conformance.Store{
		New:      func(*testing.T) core.Store { return odd{naive.NewStore(""), before} },
		Provides: conformance.StoreProvides{KeepsFinished: true},
	}
}

func oddClaimer(before func(call kind) error) conformance.Claimer {
	return conformance.Claimer{
		New: func(t *testing.T) core.Claimer { return oddStore(before).New(t) },
		Put: func(t *testing.T, c core.Claimer, tasks []core.Task) {
			require.NoError(t, c.(core.Store).Insert(t.Context(), core.Call{ID: rand.Text(), Now: epoch}, tasks))
		},
		Provides: conformance.ClaimerProvides{KeepsFinished: true},
	}
}

// on fails calls of one kind.
func on(which kind, do func() error) func(kind) error {
	return func(call kind) error {
		if call != which {
			return nil
		}
		return do()
	}
}

var errOdd = errors.New("not today")

func burst() error { panic("it burst") }
func hang() error  { select {} }

// refuse fails item index by the name of id.
func refuse(index int, id core.ID) func() error {
	return func() error {
		return &core.BatchError{Items: []core.ItemError{{Index: index, ID: id, Err: core.ErrExists}}}
	}
}

// always fails every call; mostly fails all but one in five.
func always(kind) error { return errOdd }

func mostly() func(kind) error {
	var n atomic.Int64
	return func(kind) error {
		if n.Add(1)%5 == 0 {
			return nil
		}
		return errOdd
	}
}

var (
	small    = Options{Histories: 5, InProcess: true, shrink: time.Nanosecond, hanging: time.Minute}
	watchful = Options{Histories: 5, InProcess: true, shrink: time.Nanosecond, hanging: time.Second}
)

// wrongIndex has an entry too many from the start; from its third handle on it is
// another one.
func wrongIndex(then func(t *testing.T) core.TimeIndex) conformance.Index {
	news := 0
	return conformance.Index{New: func(t *testing.T) core.TimeIndex {
		if news++; news < 3 {
			return indexOnly{naive.NewIndex("not empty at first")}
		}
		return then(t)
	}}
}

type indexOnly struct{ core.TimeIndex }

// exhausted is an index whose calls fail.
type exhausted struct{ *naive.Index }

func (exhausted) Due(context.Context, time.Time, int) ([]core.Entry, error) { return nil, errOdd }

// noHolder hides its rows from Waiting.
type noHolder struct{ core.Store }

func (noHolder) Waiting(context.Context, time.Time, core.Entry, time.Time, int) ([]core.Entry, error) {
	return []core.Entry{{ID: "nobody's", Due: epoch}}, nil
}

// bad are backends, and what the tests must say about each.
var bad = []struct {
	name string
	test func(t *testing.T)
	says []string
	// never is what it mustn't say.
	never []string
}{
	{"an item out of range", func(t *testing.T) { TestLinearizable(t, oddStore(on(claims, refuse(99, "a"))), small) },
		[]string{"BatchError of Claim names item 99, id \"a\", but the items are [", "-rapid.seed="}, nil},
	{"an item of another id", func(t *testing.T) { TestLinearizable(t, oddStore(on(cancels, refuse(0, "other"))), small) },
		[]string{"BatchError of Cancel names item 0, id \"other\", but the items are [", "-rapid.seed="}, nil},
	{"a panic in a client", func(t *testing.T) { TestLinearizable(t, oddStore(on(claims, burst)), small) },
		[]string{"client ", "panic: it burst", "history.burst", "-rapid.seed="}, nil},
	{"a panic in the first insert", func(t *testing.T) { TestLinearizable(t, oddStore(on(inserts, burst)), small) },
		[]string{"panic: it burst", "history.burst", "-rapid.seed="}, nil},
	{"a panic in New", func(t *testing.T) {
		TestLinearizable(t, conformance.Store{New: func(*testing.T) core.Store { panic("no store") }}, small)
	}, []string{"panic: no store", "bad_test.go", "-rapid.seed="}, nil},
	{"a panic in a store's model test", func(t *testing.T) { TestStore(t, oddStore(on(settles, burst)), small) },
		[]string{": Settle", "it burst", "history.burst", "-rapid.seed="}, nil},
	{"a panic in a claimer's model test", func(t *testing.T) { TestClaimer(t, oddClaimer(on(extends, burst)), small) },
		[]string{": Extend", "it burst", "history.burst", "-rapid.seed="}, nil},
	{"every call fails", func(t *testing.T) { TestLinearizable(t, oddStore(always), small) },
		[]string{"too often to tell", "not today", "-rapid.seed="}, nil},
	{"most calls fail", func(t *testing.T) { TestLinearizable(t, oddStore(mostly()), small) },
		[]string{"fail", "too often", "not today", "-rapid.seed="}, nil},
	{"every settle fails", func(t *testing.T) {
		TestLinearizable(t, oddStore(on(settles, func() error { return errOdd })), small)
	}, []string{"too often to tell", "not today", "-rapid.seed="}, nil},
	{"too tangled", func(t *testing.T) {
		o := small
		o.checking = time.Nanosecond
		TestLinearizable(t, naiveStore("", false), o)
	}, []string{"too tangled", "-rapid.seed="}, nil},
	{"a client hangs", func(t *testing.T) { TestLinearizable(t, oddStore(on(claims, hang)), watchful) },
		[]string{"the history hangs: not over after 1s", "history.hang(", "-rapid.seed="}, nil},
	{"a store hangs", func(t *testing.T) { TestStore(t, oddStore(on(claims, hang)), watchful) },
		[]string{"the history hangs: not over after 1s", "history.hang(", ": Claim", "-rapid.seed="}, nil},
	{"an index whose New hangs", func(t *testing.T) {
		TestIndex(t, conformance.Index{New: func(*testing.T) core.TimeIndex { _ = hang(); return nil }}, watchful)
	}, []string{"the history hangs: not over after 1s", "history.hang(", "-rapid.seed="}, nil},
	{"no New of an index", func(t *testing.T) { TestIndex(t, conformance.Index{}, small) },
		[]string{"conformance.Index.New is nil"}, nil},
	{"no New of a store", func(t *testing.T) { TestStore(t, conformance.Store{}, small) },
		[]string{"conformance.Store.New is nil"}, nil},
	{"no New of a store at once", func(t *testing.T) { TestLinearizable(t, conformance.Store{}, small) },
		[]string{"conformance.Store.New is nil"}, nil},
	{"no New of a claimer", func(t *testing.T) {
		TestClaimer(t, conformance.Claimer{Put: oddClaimer(nil).Put}, small)
	}, []string{"conformance.Claimer.New is nil"}, nil},
	{"no Put", func(t *testing.T) { TestClaimer(t, conformance.Claimer{New: oddClaimer(nil).New}, small) },
		[]string{"conformance.Claimer.Put is nil"}, nil},
	{"nil of an index's New", func(t *testing.T) {
		TestIndex(t, conformance.Index{New: func(*testing.T) core.TimeIndex { return nil }}, small)
	}, []string{"conformance.Index.New returned nil"}, nil},
	{"nil of a claimer's Peer", func(t *testing.T) {
		c := oddClaimer(nil)
		c.Peer = func(*testing.T, core.Claimer) core.Claimer { return nil }
		TestClaimer(t, c, small)
	}, []string{"conformance.Claimer.Peer returned nil"}, nil},
	{"nil of a store's New", func(t *testing.T) {
		TestStore(t, conformance.Store{New: func(*testing.T) core.Store { return (*naive.Store)(nil) }}, small)
	}, []string{"conformance.Store.New returned nil"}, nil},
	{"nil of a store's Peer", func(t *testing.T) {
		s := naiveStore("", false)
		s.Peer = func(*testing.T, core.Store) core.Store { return nil }
		TestLinearizable(t, s, small)
	}, []string{"conformance.Store.Peer returned nil"}, nil},
	{"a capability that isn't there", func(t *testing.T) {
		s := oddStore(nil)
		s.Provides.Purger = true
		TestStore(t, s, small)
	}, []string{"conformance.Store.Provides.Purger is set"}, nil},
	{"New ends the test when a failure is made smaller", func(t *testing.T) {
		TestIndex(t, wrongIndex(func(t *testing.T) core.TimeIndex { t.Fatal("no server left"); return nil }), small)
	}, []string{"no server left", "entries in the index afterwards:", "-rapid.seed=", "not made smaller"}, nil},
	{"an error of New when a failure is made smaller", func(t *testing.T) {
		TestIndex(t, wrongIndex(func(*testing.T) core.TimeIndex { return exhausted{naive.NewIndex("")} }), Options{Histories: 5, InProcess: true})
	}, []string{"entries in the index afterwards:", "-rapid.seed="}, []string{"not today"}},
	{"an error of a store's New when a failure is made smaller", func(t *testing.T) {
		o, news := Options{Histories: 5, InProcess: true}, 0
		s := oddStore(func(kind) error {
			if news > 3 {
				return errOdd
			}
			return nil
		})
		right := s.New
		s.New = func(t *testing.T) core.Store { news++; return noHolder{right(t)} }
		TestStore(t, s, o)
	}, []string{"got  ", "-rapid.seed="}, []string{"not today"}},
	{"New ends the test", func(t *testing.T) {
		TestStore(t, conformance.Store{New: func(t *testing.T) core.Store { t.Fatal("no server"); return nil }}, small)
	}, []string{"no server"}, nil},
}

// The failing tests run in a process of their own, which goes on to the last.
func TestBadBackendsFailInPlainWords(t *testing.T) {
	const played = "DUECLAIM_PLAY_BAD_BACKENDS"
	if os.Getenv(played) != "" {
		for _, b := range bad {
			t.Run(b.name, b.test)
		}
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	// A limit of its own: what it is about may well hang.
	play := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout=100s")
	play.Env = append(os.Environ(), played+"=1")
	out, err := play.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "\n--- FAIL: "+t.Name(), "the process ran to its end:\n%s", out)
	failed := t.Name()
	parts := strings.Split(string(out), "=== RUN   "+t.Name()+"/")
	for _, b := range bad {
		t.Run(b.name, func(t *testing.T) {
			name := strings.ReplaceAll(b.name, " ", "_")
			var said strings.Builder // of the test and of those below it
			for _, part := range parts[1:] {
				if first, rest, _ := strings.Cut(part, "\n"); first == name || strings.HasPrefix(first, name+"/") {
					said.WriteString(rest)
				}
			}
			for _, text := range b.says {
				assert.Contains(t, said.String(), text)
			}
			assert.Contains(t, string(out), "--- FAIL: "+failed+"/"+name+" (")
			assert.NotContains(t, said.String(), "nil pointer")
			for _, text := range b.never {
				assert.NotContains(t, said.String(), text)
			}
		})
	}
}

// Of things that all may come first, and one that can't.
func TestTheBeginningOfAContradictionIsLookedForInALimitedTime(t *testing.T) {
	var history []porcupine.Operation
	for i := range 40 {
		history = append(history, porcupine.Operation{ClientId: i, Input: i, Output: answer{}, Call: int64(i), Return: int64(100 + i)})
	}
	model := porcupine.Model{
		Init: func() any { return "" },
		Step: func(s, in, _ any) (bool, any) {
			return in.(int) != 39, s.(string) + string(rune('0'+in.(int)))
		},
	}
	assert.Len(t, beginning(model, slices.Clone(history), 100*time.Millisecond), len(history))
}

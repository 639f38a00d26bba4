package history

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// record is one history as it is played: what was drawn, what was called, and
// what came of it.
type record struct {
	*rapid.T // nil where the history is played again without some steps
	steps    []string
	broken   string
	kind     string // of what broke: see fail
	wanted   string // where a failure is made smaller: its kind
	// again plays the history without some of its actions, on a fresh backend.
	again   func(without []bool) *record
	actions int
	dog     *watchdog
}

// step notes a call that is about to be made.
func (r *record) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.steps = append(r.steps, text)
	r.dog.note(text)
}

// fail ends the history. Rapid gets a text that is the same each time the history
// is played, which it takes for a sign that it is the same failure.
func (r *record) fail(format string, args ...any) {
	r.broken, r.kind = fmt.Sprintf(format, args...), kindOf(args)
	if r.wanted != "" && r.kind != r.wanted { // such as an error of a backend that has no connection left
		r.broken = ""
		if r.T != nil {
			r.Skip("another failure than the one that is made smaller")
		}
	}
	if r.T == nil {
		panic(stopped{})
	}
	r.Fatalf("the answer to the last step breaks the contract")
}

// kindOf tells failures apart that have different causes: each error that a call
// returned is one, but for the ids and numbers in it; all wrong answers are one.
func kindOf(args []any) string {
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			return "error: " + changing.ReplaceAllString(err.Error(), "")
		}
	}
	return "wrong answer"
}

// changing matches what differs in an error's text from one history to another.
var changing = regexp.MustCompile(`"[^"]*"|[0-9]+`)

// failure is what a run of histories found.
type failure struct {
	seed   uint64 // plays the failing history first
	played int    // histories before it
	small  *record
	// Where no record tells: what rapid or the watchdog said, and the history
	// played last, which is the one that they speak of.
	said string
	last *record
}

func (f *failure) text(test string) string {
	var b strings.Builder
	if f.small == nil {
		fmt.Fprintf(&b, "a random history failed, the last step of:\n%s%s\n", f.last.list(), f.said)
	} else {
		fmt.Fprintf(&b, "a random history was answered against the contract; the smallest one found that shows it:\n%s%s\n", f.small.list(), f.small.broken)
	}
	fmt.Fprintf(&b, "It was history %d of the run. To play it again, as the first one:\n  go test -run '%s' -rapid.seed=%d", f.played+1, pattern(test), f.seed)
	return b.String()
}

func (r *record) list() string {
	var b strings.Builder
	for i, step := range r.steps {
		fmt.Fprintf(&b, "  %2d  %s\n", i+1, step)
	}
	return b.String()
}

// pattern is what -run takes to choose this one test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// rapidFlags guards rapid's settings, which are flags of the process: rapid has no
// other way to set them.
var rapidFlags sync.Mutex

// search has rapid play histories until one fails, and then make that one smaller.
// It returns nil where all were right.
func search(t *testing.T, seed uint64, o Options, play func(*record)) *failure {
	rapidFlags.Lock()
	defer rapidFlags.Unlock()
	if f := flag.Lookup("rapid.shrinktime"); o.shrink == 0 && f.Value.String() != f.DefValue {
		o.shrink, _ = time.ParseDuration(f.Value.String()) // somebody asks for it: then that is all
	}
	histories, steps := o.histories(false), o.steps()
	if testing.Short() { // rapid would play fewer still
		histories, steps = histories*5, steps*2
	}
	set := map[string]string{
		"rapid.seed": strconv.FormatUint(seed, 10), "rapid.checks": strconv.Itoa(histories), "rapid.steps": strconv.Itoa(steps),
		"rapid.nofailfile": "true", // the seed is enough, and no file is left behind in the package
	}
	if o.shrink != 0 {
		set["rapid.shrinktime"] = o.shrink.String()
	} else if !o.InProcess {
		set["rapid.shrinktime"] = "10s" // too short to get far with a slow backend: see reduce
	}
	for flagName, value := range set {
		f := flag.Lookup(flagName)
		old := f.Value.String()
		if err := flag.Set(flagName, value); err != nil {
			panic(err)
		}
		defer func() { _ = f.Value.Set(old) }()
	}

	found, failed := &failure{seed: seed}, false
	dog := newWatchdog(o.hanging)
	// Rapid adds to a history's seed its number, which makes the next one's.
	nth := func(played int) uint64 { return seed + uint64(played*(played+1)/2) }
	broken := dog.watch(t, func() { failed = dog.search(t.Name(), found, o, play) }, func() {
		if found.small != nil {
			found.seed = nth(found.played)
			t.Errorf("%s\nIt was not made smaller: a hook ended the test.", found.text(t.Name()))
		}
	})
	switch {
	case broken != "":
		played, steps := dog.saw()
		return &failure{seed: nth(played), played: played, said: broken, last: &record{steps: steps}}
	case failed:
		return found
	default:
		return nil
	}
}

// search plays histories and tells whether one failed, which found then has.
func (w *watchdog) search(name string, found *failure, o Options, play func(*record)) bool {
	tb := &quiet{name: name}
	tb.run(func() {
		rapid.Check(tb, func(t *rapid.T) {
			w.alive(found.played)
			r := &record{T: t, dog: w}
			if found.small != nil {
				r.wanted = found.small.kind
			}
			found.last = r
			ended := false
			defer func() {
				switch {
				case r.broken != "":
					if found.small == nil || len(r.steps) <= len(found.small.steps) {
						found.small = r
					}
				case ended && found.small == nil:
					found.played++
				}
			}()
			play(r)
			ended = true
		})
	})
	if !tb.failed {
		return false
	}
	if found.small != nil && found.small.again != nil && o.shrink == 0 {
		found.small = reduce(found.small, time.Now().Add(reducing))
	}
	found.said = strings.Join(tb.said, "\n")
	if match := seedSaid.FindStringSubmatch(found.said); match != nil {
		found.seed, _ = strconv.ParseUint(match[1], 10, 64)
	}
	return true
}

// reducing bounds reduce.
const reducing = 30 * time.Second

// reduce leaves out actions without which the history still fails: first half of
// them at a time, then a quarter, at last each by itself. Rapid leaves out what it
// drew, which changes all that was drawn later, and needs thousands of tries.
func reduce(r *record, deadline time.Time) *record {
	without := make([]bool, r.actions)
	for size := (r.actions + 1) / 2; size > 0; {
		smaller := false
		for from := 0; from < r.actions && time.Now().Before(deadline); from += size {
			try := slices.Clone(without)
			for i := from; i < min(from+size, r.actions); i++ {
				try[i] = true
			}
			if slices.Equal(try, without) {
				continue
			}
			if again := r.again(try); again.broken != "" {
				without, smaller = try, true
				r.steps, r.broken = again.steps, again.broken
			}
		}
		if size > 1 || !smaller {
			size /= 2
		}
	}
	return r
}

// seedSaid finds the seed of the failing history, which differs from the run's.
var seedSaid = regexp.MustCompile(`-rapid\.seed=(\d+)`)

// quiet is a rapid.TB that keeps what it is told to itself: the failure is told
// in our words, or is what a test of the suite itself hopes for.
type quiet struct {
	name   string
	failed bool
	said   []string
}

var _ rapid.TB = (*quiet)(nil)

// stopped is what FailNow panics with.
type stopped struct{}

// run calls f until it returns or calls FailNow.
func (q *quiet) run(f func()) {
	defer func() {
		if p := recover(); p != nil && p != (stopped{}) {
			panic(p)
		}
	}()
	f()
}

func (q *quiet) Helper()                   {}
func (q *quiet) Name() string              { return q.name }
func (q *quiet) Logf(string, ...any)       {}
func (q *quiet) Log(...any)                {}
func (q *quiet) Skipf(string, ...any)      { q.SkipNow() }
func (q *quiet) Skip(...any)               { q.SkipNow() }
func (q *quiet) SkipNow()                  { panic(stopped{}) }
func (q *quiet) Errorf(f string, a ...any) { q.Error(fmt.Sprintf(f, a...)) }
func (q *quiet) Error(a ...any)            { q.said, q.failed = append(q.said, fmt.Sprint(a...)), true }
func (q *quiet) Fatalf(f string, a ...any) { q.Fatal(fmt.Sprintf(f, a...)) }
func (q *quiet) Fatal(a ...any)            { q.Error(a...); q.FailNow() }
func (q *quiet) FailNow()                  { q.failed = true; panic(stopped{}) }
func (q *quiet) Fail()                     { q.failed = true }
func (q *quiet) Failed() bool              { return q.failed }

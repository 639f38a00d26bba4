package seededbugs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The list can't rot: a bug whose place has changed is to be put in again, or to be
// replaced by another one.
func TestEachBugHasItsPlaceAndTwoKindsOfTests(t *testing.T) {
	list := all()
	assert.GreaterOrEqual(t, len(list), 14)
	seen := map[string]bool{}
	for _, b := range list {
		assert.False(t, seen[b.name], "%s: twice", b.name)
		seen[b.name] = true
		assert.NotEmpty(t, b.harm, b.name)
		_, text := b.source(t)
		assert.Equal(t, 1, strings.Count(text, b.old), "%s: how often %s has %q", b.name, b.file, b.old)
		assert.NotEqual(t, b.old, b.new, b.name)
		kinds := map[string]bool{}
		for _, c := range b.by {
			kinds[c.kind] = true
		}
		assert.GreaterOrEqual(t, len(kinds), 2, "%s: kinds of tests", b.name)
	}
}

// tally is what all checks came to.
type tally struct {
	mu       sync.Mutex
	controls map[string]*control
	tried    int
	caught   int
	by       map[string]int
}

// control is a check without a bug, which must pass.
type control struct {
	once sync.Once
	outcome
}

// control runs a check without a bug, once for all bugs, and again where it
// fails: the machine is busy.
func (s *tally) control(t *testing.T, c check) outcome {
	t.Helper()
	key := fmt.Sprint(c.pkg, " ", c.run, c.env)
	s.mu.Lock()
	if s.controls[key] == nil {
		s.controls[key] = &control{}
	}
	the := s.controls[key]
	s.mu.Unlock()
	the.once.Do(func() {
		for range 2 {
			if the.outcome = c.play(t, ""); the.passed {
				break
			}
			t.Logf("without a bug %s %s failed:\n%s", c.pkg, c.run, end(the.output))
		}
		t.Logf("without a bug: %s %s: %.1f s", c.pkg, c.run, the.took.Seconds())
	})
	return the.outcome
}

// TestSeededBugsAreCaught tries all bugs with DUECLAIM_STRESS, the one that
// DUECLAIM_BUG names, or one at random.
func TestSeededBugsAreCaught(t *testing.T) {
	if _, err := os.Stat(root(t) + "/go.mod"); err != nil {
		t.Skip("the sources aren't there")
	}
	list := all()
	name := os.Getenv("DUECLAIM_BUG")
	if name == "" && os.Getenv("DUECLAIM_STRESS") == "" {
		one(t, list)
		return
	}
	s := &tally{controls: map[string]*control{}, by: map[string]int{}}
	t.Run("all", func(t *testing.T) {
		for _, b := range list {
			if name != "" && b.name != name {
				continue
			}
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				s.try(t, b)
			})
		}
	})
	if name != "" || s.tried == 0 {
		return
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(s.by)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, s.by[kind]))
	}
	t.Attr("dueclaim.caught", fmt.Sprintf("seeded bugs, each by two kinds of tests or more: %d of %d", s.caught, s.tried))
	t.Attr("dueclaim.figure", fmt.Sprintf("seeded bugs: %d of %d caught by two kinds of tests or more; by %s", s.caught, s.tried, strings.Join(kinds, ", ")))
}

// try puts in one bug and runs its checks, the quickest first, until two kinds have
// caught it; all of them where it was asked for by name.
func (s *tally) try(t *testing.T, b bug) {
	flag := b.overlay(t)
	kinds := map[string]bool{}
	for _, c := range b.by {
		if len(kinds) >= 2 && os.Getenv("DUECLAIM_BUG") == "" {
			break
		}
		right := s.control(t, c)
		if right.missing != "" {
			t.Skip(right.missing)
		}
		require.True(t, right.passed, "%s %s fails without any bug", c.pkg, c.run)
		o := c.play(t, flag)
		if len(o.caught) == 0 {
			t.Logf("%s: NOT caught by %s %s (%.1f s):\n%s", b.name, c.pkg, c.run, o.took.Seconds(), end(o.output))
			continue
		}
		kinds[c.kind] = true
		t.Logf("%s: caught by %s, %s (%.1f s)", b.name, c.kind, o.caught[0], o.took.Seconds())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	for kind := range kinds {
		s.by[kind]++
	}
	if assert.GreaterOrEqual(t, len(kinds), 2, "%s (%s) was caught by %v only", b.name, b.harm, slices.Collect(maps.Keys(kinds))) {
		s.caught++
	}
}

// one tries a bug that is caught without a server, with one of the tests for it.
func one(t *testing.T, list []bug) {
	type pair struct {
		bug   bug
		check check
	}
	var pairs []pair
	for _, b := range list {
		for _, c := range b.by {
			if c.bare {
				pairs = append(pairs, pair{b, c})
			}
		}
	}
	seed := uint64(time.Now().UnixNano())
	p := pairs[rand.New(rand.NewPCG(seed, 0)).IntN(len(pairs))]
	t.Logf("seed %d chose %s (again, with all of its tests: DUECLAIM_BUG=%s)", seed, p.bug.name, p.bug.name)
	o := p.check.play(t, p.bug.overlay(t))
	require.NotEmpty(t, o.caught, "%s (%s) was not caught by %s %s:\n%s", p.bug.name, p.bug.harm, p.check.pkg, p.check.run, end(o.output))
	t.Attr("dueclaim.figure", fmt.Sprintf("seeded bugs: one of %d at random, %s, caught by %s, %s, in %.1f s",
		len(list), p.bug.name, p.check.kind, o.caught[0], o.took.Seconds()))
}

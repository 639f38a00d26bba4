package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance/internal/owner"
)

// A case that takes longer than this hangs; the slowest real ones need seconds.
const hanging = 60 * time.Second

// patience bounds the wait for something that a correct backend does at once.
const patience = 10 * time.Second

// weakerPatience is the patience with a case that is to fail.
const weakerPatience = 300 * time.Millisecond

// testCase is one rule and the code that checks it against an environment E.
type testCase[E any] struct {
	name string // group/what, unique in its suite
	rule string // the MUST, as the contract has it
	// needs names the capabilities without which the case has nothing to check,
	// with spaces between; with a leading "!" one that must be absent.
	needs string
	// timed: the case steps in while calls are under way, or gives them little time,
	// and chance decides whether a weaker promise shows.
	timed bool
	run   func(e E)
}

// settings is what a suite's cases have in common.
type settings struct {
	provides map[string]bool
	skip     map[string]string
	weaker   map[string]string // cases that must fail, with the reason
	patience time.Duration
	watchdog time.Duration
	// only, where it isn't nil, chooses the cases to run.
	only func(name string) bool
	// report gets the text of each failed case. The suite's own tests replace it
	// to see which cases a broken backend fails.
	report func(t *testing.T, name, failure string)
}

func newSettings(provides map[string]bool, skip map[string]string) settings {
	return settings{provides: provides, skip: skip, patience: patience, watchdog: hanging, report: func(t *testing.T, _, failure string) {
		t.Helper()
		t.Error(failure)
	}}
}

// checkSkip fails when a skip has no reason or names no case of the suite: a
// misspelt or outdated skip must not go unnoticed.
func (s settings) checkSkip(t *testing.T, known []string) {
	t.Helper()
	if err := s.skips(known); err != nil {
		t.Error(err)
	}
}

func (s settings) skips(known []string) error {
	return errors.Join(excepts("Skip", s.skip, known), excepts("Weaker", s.weaker, known))
}

func excepts(field string, cases map[string]string, known []string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("the field %s names an unknown case %q; the cases are:\n  %s", field, name, strings.Join(known, "\n  ")))
		} else if cases[name] == "" {
			errs = append(errs, fmt.Errorf("the case %q in %s has no reason", name, field))
		}
	}
	return errors.Join(errs...)
}

// whyNot says why a case isn't run, "" where it is.
func (s settings) whyNot(name, needs string) string {
	if reason := s.skip[name]; reason != "" {
		return "skipped by the adapter: " + reason
	}
	for _, need := range strings.Fields(needs) {
		capability, absent := strings.CutPrefix(need, "!")
		switch {
		case s.provides[capability] != absent:
		case absent:
			return "not for a backend that provides " + capability
		default:
			return "not provided: " + capability
		}
	}
	return ""
}

func names[E any](cases []testCase[E]) []string {
	list := make([]string, len(cases))
	for i, c := range cases {
		list[i] = c.name
	}
	return list
}

// runCases runs each case as a subtest on an environment of its own.
func runCases[E any](t *testing.T, s settings, cases []testCase[E], env func(t *testing.T, c *caseT) E) {
	t.Helper()
	for _, tc := range cases {
		if s.only != nil && !s.only(tc.name) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			group, _, _ := strings.Cut(tc.name, "/")
			t.Attr("dueclaim.group", group)
			t.Attr("dueclaim.case", tc.name)
			t.Attr("dueclaim.rule", tc.rule)
			if why := s.whyNot(tc.name, tc.needs); why != "" {
				t.Attr("dueclaim.skip", why)
				t.Skip(why)
			}
			if why := s.weaker[tc.name]; why != "" {
				t.Attr("dueclaim.weaker", why)
				if fault := s.mustFail(t, why, tc.timed, func(s settings) string { return runCase(t, s, tc, env) }); fault != "" {
					s.report(t, tc.name, fault)
				}
				return
			}
			if failure := runCase(t, s, tc, env); failure != "" {
				s.report(t, tc.name, failure)
			}
		})
	}
}

// mustFail runs a case that was declared weaker and returns what is wrong with the
// declaration, "" for nothing. It fails in the case's own words: neither a panic
// nor a hang is a weaker promise. A timed case may pass as well.
func (s settings) mustFail(t *testing.T, why string, timed bool, run func(settings) string) string {
	s.patience = min(s.patience, weakerPatience)
	failure := run(s)
	switch {
	case failure == "" && timed:
		return ""
	case failure == "":
		return fmt.Sprintf("declared as weaker (%s), but it passed: take it out of the field Weaker", why)
	case outOfHand.MatchString(failure):
		return failure
	}
	t.Logf("weaker, as declared (%s): %s", why, failure)
	return ""
}

// runCase runs the case, and the hooks that make what it works on, in a goroutine of
// its own, so that a hanging one can be abandoned. It returns what it found, "" for
// nothing.
func runCase[E any](t *testing.T, s settings, tc testCase[E], env func(t *testing.T, c *caseT) E) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &caseT{ctx: ctx, patience: s.patience}
	ended := make(chan struct{})
	go owner.Do(ctx, t.Name(), func() {
		defer close(ended)
		defer c.guard(c.wantIdle)
		defer c.cleanUp()
		c.guard(func() { tc.run(env(t, c)) })
	})

	timer := time.NewTimer(s.watchdog)
	defer timer.Stop()
	select {
	case <-ended:
		if c.calm() && t.Skipped() { // by a hook
			t.SkipNow()
		}
		if c.calm() && t.Failed() {
			t.FailNow()
		}
	case <-timer.C:
		c.Errorf("%s hangs: not over after %s; its own goroutines, then all others:\n%s", c.doing(), s.watchdog, stacks(t.Name()))
		c.letGo()
	}
	return c.text(tc.rule)
}

// letGo ends what a hanging case began, its locks and outages among it, so that
// what it opened can be closed; not for long, since that may hang too.
func (c *caseT) letGo() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.cleanUp()
	}()
	select {
	case <-over:
	case <-time.After(c.patience):
	}
}

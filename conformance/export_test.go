package conformance

import (
	"testing"
	"time"
)

// The suite's own tests run its cases against broken backends and want to know
// which of them fail, without failing themselves.

// IndexFailures returns the cases that index fails, by name, with their texts.
func IndexFailures(t *testing.T, index Index, only func(name string) bool) map[string]string {
	return collect(newSettings(index.provides(), index.Skip), only, func(s settings) { testIndex(t, index, s) })
}

// StoreFailures returns the cases that store fails, by name, with their texts.
func StoreFailures(t *testing.T, store Store, only func(name string) bool) map[string]string {
	return collect(newSettings(store.provides(), store.Skip), only, func(s settings) { testStore(t, store, s) })
}

// PairFailures returns the cases that pair fails, by name, with their texts.
func PairFailures(t *testing.T, pair Pair, only func(name string) bool) map[string]string {
	return collect(newSettings(nil, pair.Skip), only, func(s settings) { testScheduler(t, pair, s) })
}

func collect(s settings, only func(name string) bool, run func(settings)) map[string]string {
	failures := map[string]string{}
	s.only = only
	s.patience = 2 * time.Second
	s.watchdog = 10 * time.Second
	s.report = func(_ *testing.T, name, failure string) { failures[name] = failure }
	run(s)
	return failures
}

// HangingIndexFailure runs one case with a watchdog that doesn't wait long.
func HangingIndexFailure(t *testing.T, index Index, name string) string {
	s := newSettings(index.provides(), nil)
	s.watchdog = 100 * time.Millisecond
	s.only = func(n string) bool { return n == name }
	got := ""
	s.report = func(_ *testing.T, _, failure string) { got = failure }
	testIndex(t, index, s)
	return got
}

// HangingStoreFailure is HangingIndexFailure for a store.
func HangingStoreFailure(t *testing.T, store Store, name string) string {
	s := newSettings(store.provides(), store.Skip)
	s.watchdog = 100 * time.Millisecond
	s.only = func(n string) bool { return n == name }
	got := ""
	s.report = func(_ *testing.T, _, failure string) { got = failure }
	testStore(t, store, s)
	return got
}

// WhyNot says why a case with these needs isn't run, "" where it is.
func WhyNot(index Index, name, needs string) string {
	return newSettings(index.provides(), index.Skip).whyNot(name, needs)
}

// CheckSkips returns what is wrong with the skips of a suite with these cases.
func CheckSkips(skip map[string]string, known []string) error {
	return settings{skip: skip}.skips(known)
}

// CaseNames returns the names of all cases of TestIndex, TestStore and
// TestScheduler.
func CaseNames() (index, store, pair []string) {
	return names(indexCases()), append(names(claimerCases()), names(storeCases())...), names(schedulerCases())
}

// Rules returns all cases' rules by suite and name.
func Rules() map[string]string {
	rules := map[string]string{}
	for _, c := range indexCases() {
		rules["index "+c.name] = c.rule
	}
	for _, c := range claimerCases() {
		rules["claimer "+c.name] = c.rule
	}
	for _, c := range storeCases() {
		rules["store "+c.name] = c.rule
	}
	for _, c := range schedulerCases() {
		rules["pair "+c.name] = c.rule
	}
	return rules
}

var AwkwardIDs = awkwardIDs

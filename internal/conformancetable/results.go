package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/internal/backends"
)

// results is what the table shows.
type results struct {
	Caught []string // such as "broken indexes: 28 of 28"
	Cases  []*testCase
}

// testCase is a row of the table in full: one rule and how each backend fared.
type testCase struct {
	Class string // one of backends.Classes
	Name  string // group/what
	Rule  string
	// Results has a backend's result by its name: "passed", or why the case was
	// left out. None: it was not run.
	Results map[string]string
}

func (c *testCase) group() string {
	group, _, _ := strings.Cut(c.Name, "/")
	return group
}

func compareCases(a, b *testCase) int {
	return cmp.Or(slices.Index(backends.Classes, a.Class)-slices.Index(backends.Classes, b.Class), strings.Compare(a.Name, b.Name))
}

// passed is the result of a case that passed in every configuration that it is
// meant for.
const passed = "passed"

// Why a case was left out, as the suite says it.
const (
	skippedBy    = "skipped by the adapter: "
	notProvided  = "not provided: "
	notMeantFor  = "not for a backend that provides "
	weakerBy     = "weaker, as the mode's promises say: "
	elsewhereToo = passed + "; in another configuration " + skippedBy
)

// gather makes results of a run. A backend has several tests, each of one of its
// configurations; a case counts once, however many ran it.
func gather(r *testRun) (*results, error) {
	type cell struct{ backend, name string }
	outcomes := map[cell][]string{}
	cases := map[cell]*testCase{} // by class and name
	var all results
	var failures []error
	for _, t := range r.order {
		if caught := t.attrs["dueclaim.caught"]; caught != "" {
			all.Caught = append(all.Caught, caught)
			if t.outcome == "fail" {
				failures = append(failures, fmt.Errorf("caught %s (%s %s)", caught, t.pkg, t.name))
			}
		}
		name := t.caseName()
		if name == "" {
			continue
		}
		list := r.backendsOf(t)
		ofTable := slices.ContainsFunc(list, func(b string) bool { return strings.HasPrefix(b, backends.Table+":") })
		for _, backend := range list {
			class, of, _ := strings.Cut(backend, ":")
			if ofTable && class == backends.Store {
				continue // the store whose claimer it is
			}
			if !slices.Contains(backends.Classes, class) {
				continue // testreport complains
			}
			result := t.attrs["dueclaim.skip"]
			switch {
			case t.outcome == "pass" && t.attrs["dueclaim.weaker"] != "":
				result = weakerBy + t.attrs["dueclaim.weaker"]
			case t.outcome == "pass":
				result = passed
			case t.outcome == "fail":
				failures = append(failures, fmt.Errorf("%s fails %s (%s %s)", backend, name, t.pkg, t.name))
				continue
			case result == "":
				continue // it could not have its server
			}
			c := cases[cell{class, name}]
			if c == nil {
				c = &testCase{Class: class, Name: name, Results: map[string]string{}}
				cases[cell{class, name}] = c
				all.Cases = append(all.Cases, c)
			}
			c.Rule = t.attrs["dueclaim.rule"]
			outcomes[cell{backend, name}] = append(outcomes[cell{backend, name}], result)
			c.Results[of] = combine(outcomes[cell{backend, name}])
		}
	}
	slices.Sort(all.Caught)
	slices.SortFunc(all.Cases, compareCases)
	return &all, errors.Join(failures...)
}

// caseName is the name of the case that a test is, "" for all other tests. Those
// that have only a group are named after their test.
func (t *test) caseName() string {
	group := t.attrs["dueclaim.group"]
	name := t.attrs["dueclaim.case"]
	if cut := strings.LastIndex(t.name, "/"+group+"/"); name == "" && group != "" && cut >= 0 {
		name, _, _ = strings.Cut(t.name[cut+1:], "#") // go test numbers repeated names
	}
	return name
}

// combine makes one result of those of all configurations. What one of them does
// not provide is no news where another one passed; what its adapter asked to
// skip is.
func combine(outcomes []string) string {
	outcomes = slices.Compact(slices.Sorted(slices.Values(outcomes)))
	if !slices.Contains(outcomes, passed) {
		return strings.Join(outcomes, "; ")
	}
	for _, o := range outcomes {
		if why, ok := strings.CutPrefix(o, skippedBy); ok {
			return elsewhereToo + why
		}
	}
	return passed
}

// load reads what save wrote; a missing file is an empty table.
func load(path string) (*results, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &results{}, nil
	}
	if err != nil {
		return nil, err
	}
	var r results
	lines := json.NewDecoder(bufio.NewReader(bytes.NewReader(text)))
	if err := lines.Decode(&r.Caught); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for {
		var c testCase
		if err := lines.Decode(&c); errors.Is(err, io.EOF) {
			return &r, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r.Cases = append(r.Cases, &c)
	}
}

// encode writes a line a case, so that a change shows as the lines of its cases.
func (r *results) encode() ([]byte, error) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	err := lines.Encode(r.Caught)
	for _, c := range r.Cases {
		err = errors.Join(err, lines.Encode(c))
	}
	return text.Bytes(), err
}

func (r *results) find(class, name string) *testCase {
	for _, c := range r.Cases {
		if c.Class == class && c.Name == name {
			return c
		}
	}
	return nil
}

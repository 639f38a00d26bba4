package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/bench/figures"
	"github.com/dueclaim/dueclaim/bench/report"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// workload is one thing that is measured. Its run is one round.
type workload struct {
	name   string
	rounds func(s sizes) int // nil: as many as asked for
	sizes  func(s sizes) string
	run    func(ctx context.Context, r *round) error
}

func workloads() []workload {
	return []workload{drainWorkload(), latenessWorkload(), scheduleWorkload(), growthWorkload(),
		contentionWorkload(), idleWorkload(), limitsWorkload()}
}

func systems() []system {
	return slices.Concat(dueclaimSystems(), riverSystems(), asynqSystems())
}

// suite is a run of several workloads.
type suite struct {
	machine *machine
	size    sizes
	only    *regexp.Regexp
	into    string // the folder of the report; "": none is written
	command string // that was called
	commit  string // that is measured
	results *figures.Results
	began   time.Time
}

func (s *suite) run(ctx context.Context, names []string) error {
	s.began = time.Now()
	var chosen []workload
	for _, w := range workloads() {
		if slices.Contains(names, w.name) || slices.Contains(names, "all") {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no workload is named %s", strings.Join(names, ", "))
	}
	if err := s.keepOthers(chosen); err != nil {
		return err
	}
	if s.results.Missing = s.missing(); s.size.quick && len(s.results.Missing) > 0 {
		for _, sys := range systems() {
			if why := s.machine.lacks(sys); why != "" && !slices.Contains(sys.servers, server.MySQL) {
				return fmt.Errorf("%s can't be checked: %s", sys.name, why)
			}
		}
	}
	var errs []error
	for _, w := range chosen {
		if err := s.measure(ctx, w); ctx.Err() != nil {
			return errors.New("interrupted")
		} else if err != nil {
			// The others are worth their time all the same.
			errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
			s.say(w.name, "FAILED: %v", err)
			s.results.Forget(w.name)
		}
		if s.into != "" { // after each, so that a later failure costs one workload
			if err := report.Write(s.into, s.results); err != nil {
				return err
			}
		}
	}
	if s.size.quick && len(errs) == 0 {
		s.say("all", "done: nothing lost, nothing run twice (the figures are of no worth)")
	} else {
		s.say("all", "done")
	}
	if len(errs) == 0 && !s.size.quick {
		measured := make([]string, len(chosen))
		for i, w := range chosen {
			measured[i] = w.name
		}
		return report.Summary(os.Stdout, s.results, measured)
	}
	return errors.Join(errs...)
}

// keepOthers reads the figures of workloads that are not measured now.
func (s *suite) keepOthers(chosen []workload) error {
	if s.into == "" {
		return nil
	}
	old, err := figures.Read(resultsFile(s.into))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, w := range chosen {
		old.Forget(w.name)
	}
	s.results.Records, s.results.Workloads = old.Records, old.Workloads
	return nil
}

func resultsFile(dir string) string { return filepath.Join(dir, "benchmarks.json") }

func (s *suite) missing() []string {
	var missing []string
	for _, sys := range systems() {
		if why := s.machine.lacks(sys); why != "" {
			missing = append(missing, sys.name+": "+why)
			s.say("all", "not measured: %s", missing[len(missing)-1])
		}
	}
	return missing
}

// measure runs all rounds of a workload.
func (s *suite) measure(ctx context.Context, w workload) error {
	rounds := s.size.rounds
	if w.rounds != nil {
		rounds = min(rounds, w.rounds(s.size))
	}
	began := time.Now()
	before := len(s.results.Records)
	for i := range rounds {
		r := &round{suite: s, workload: w.name, number: i, of: rounds}
		if err := w.run(ctx, r); err != nil {
			return err
		}
	}
	if len(s.results.Records) == before {
		return fmt.Errorf("no figure came of it: no system that is measured here matches %q", s.only)
	}
	for _, rec := range s.results.Records[before:] {
		for metric, values := range rec.Metrics {
			if slices.ContainsFunc(values, math.IsNaN) {
				return fmt.Errorf("%s, %s: %s is no number", rec.Case, rec.System, metric)
			}
		}
	}
	s.results.Workloads = append(s.results.Workloads, figures.Run{Name: w.name, Command: s.command, Commit: s.commit, Date: began.UTC().Format("2006-01-02 15:04"),
		Rounds: rounds, Seconds: math.Round(time.Since(began).Seconds()), Sizes: w.sizes(s.size)})
	return nil
}

// say prints a line of progress.
func (s *suite) say(what, format string, args ...any) {
	fmt.Printf("%6.0f s  %-10s %s\n", time.Since(s.began).Seconds(), what, fmt.Sprintf(format, args...))
}

// round is one of a workload's.
type round struct {
	*suite
	workload   string
	number, of int
}

// turns returns those of the systems that are asked for and can be measured here,
// beginning with another one each round.
func (r *round) turns(all []system) []system {
	all = slices.DeleteFunc(slices.Clone(all), func(s system) bool {
		return !r.only.MatchString(s.name) || r.machine.lacks(s) != ""
	})
	if len(all) == 0 {
		return nil
	}
	first := r.number % len(all)
	return slices.Concat(all[first:], all[:first])
}

// record notes figures of a system in a case, and prints them.
func (r *round) record(kase, system string, metrics map[string]float64) {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		r.results.Add(r.workload, kase, system, name, metrics[name])
		text = append(text, fmt.Sprintf("%s %.5g", name, metrics[name]))
	}
	r.say(r.workload, "%d/%d  %-8s %-36s %s", r.number+1, r.of, kase, system, strings.Join(text, ", "))
}

// failed says where an error happened.
func failed(kase string, s system, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, %s: %w", kase, s.name, err)
}

// named returns the systems of those names, in that order.
func named(all []system, names ...string) []system {
	var list []system
	for _, name := range names {
		for _, s := range all {
			if s.name == name {
				list = append(list, s)
			}
		}
	}
	return list
}

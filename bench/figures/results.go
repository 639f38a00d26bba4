// Package figures holds what a benchmark run measured, and keeps it in a file from
// which the report is written, so that the report can change without a new run.
package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Results is one run, or several that measured different workloads.
type Results struct {
	Machine   Machine   `json:"machine"`
	Programs  []Program `json:"programs"`
	Systems   []System  `json:"systems"`
	Missing   []string  `json:"missing"` // what could not be measured, and why
	Workloads []Run     `json:"workloads"`
	Records   []*Record `json:"records"`
}

// Machine is where the run took place.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	System string `json:"system"`
}

// Program is something that took part, with its version; Args are those of a server
// beside its defaults.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Args    string `json:"args,omitempty"`
}

// System is something that was compared, and how it was set up.
type System struct {
	Name     string `json:"name"`
	Settings string `json:"settings"`
}

// Run says how a workload was measured.
type Run struct {
	Name    string  `json:"name"`
	Command string  `json:"command"`
	Commit  string  `json:"commit"`
	Date    string  `json:"date"` // and time, UTC
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"` // it took so long
	Sizes   string  `json:"sizes"`
}

// Record holds the figures of one system in one case of a workload, by metric.
type Record struct {
	Workload string            `json:"workload"`
	Case     string            `json:"case"`
	System   string            `json:"system"`
	Metrics  map[string]Sample `json:"metrics"`
}

// Add appends one round's figure.
func (r *Results) Add(workload, kase, system, metric string, v float64) {
	rec := r.find(workload, kase, system)
	if rec == nil {
		rec = &Record{Workload: workload, Case: kase, System: system, Metrics: map[string]Sample{}}
		r.Records = append(r.Records, rec)
	}
	rec.Metrics[metric] = append(rec.Metrics[metric], Round(v))
}

// Get returns the figures of all rounds, nothing where there are none.
func (r *Results) Get(workload, kase, system, metric string) Sample {
	if rec := r.find(workload, kase, system); rec != nil {
		return rec.Metrics[metric]
	}
	return nil
}

func (r *Results) find(workload, kase, system string) *Record {
	for _, rec := range r.Records {
		if rec.Workload == workload && rec.Case == kase && rec.System == system {
			return rec
		}
	}
	return nil
}

// Run returns how a workload was measured, nil where it wasn't.
func (r *Results) Run(workload string) *Run {
	for i := range r.Workloads {
		if r.Workloads[i].Name == workload {
			return &r.Workloads[i]
		}
	}
	return nil
}

// Forget drops a workload's figures, before it is measured again.
func (r *Results) Forget(workload string) {
	r.Records = slices.DeleteFunc(r.Records, func(rec *Record) bool { return rec.Workload == workload })
	r.Workloads = slices.DeleteFunc(r.Workloads, func(run Run) bool { return run.Name == workload })
}

// Read reads a file that Encode wrote.
func Read(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Encode writes them as JSON, a record a line, so that a new run changes lines and
// not the whole file.
func (r *Results) Encode(w io.Writer) error {
	head := *r
	head.Records = nil
	text, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return err
	}
	// The head ends with its last field, the records, as null.
	const tail = "null\n}"
	if _, err := fmt.Fprintf(w, "%s[", text[:len(text)-len(tail)]); err != nil {
		return err
	}
	for i, rec := range r.Records {
		line, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		comma := ","
		if i == len(r.Records)-1 {
			comma = ""
		}
		if _, err := fmt.Fprintf(w, "\n  %s%s", line, comma); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, "\n ]\n}")
	return err
}

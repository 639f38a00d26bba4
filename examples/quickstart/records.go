package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// event is what a record is about.
type event string

const (
	started  event = "started"  // a handler began
	finished event = "finished" // it came to its end
	accepted event = "accepted" // the store has recorded the completion
)

// record is a line in a worker's file. All times are of the store's clock.
type record struct {
	Event  event     `json:"event"`
	Worker string    `json:"worker"`
	ID     core.ID   `json:"id"`
	Token  int64     `json:"token"`
	Due    time.Time `json:"due,omitzero"`   // as planned
	Start  time.Time `json:"start,omitzero"` // of the handler
	End    time.Time `json:"end,omitzero"`   // of the handler
	// TakenOver: the task had been claimed before by a worker whose lease ran out.
	TakenOver bool `json:"taken_over,omitempty"`
}

func (r record) lateness() time.Duration { return r.Start.Sub(r.Due) }

// recordFile appends records to a worker's file. Each is one write to the
// operating system, which keeps it when the process is killed; what a kill can
// damage is the last line.
type recordFile struct {
	file   *os.File
	worker string
}

func createRecords(path, worker string) (*recordFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &recordFile{file: file, worker: worker}, nil
}

func (f *recordFile) close() { _ = f.file.Close() } // nothing is buffered

func (f *recordFile) append(r record) error {
	r.Worker = f.worker
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

func (f *recordFile) started(job *core.Job) error { return f.append(about(started, job)) }

func (f *recordFile) finished(job *core.Job) error {
	r := about(finished, job)
	r.End = job.Now()
	return f.append(r)
}

func about(e event, job *core.Job) record {
	return record{
		Event: e, ID: job.Task.ID, Token: job.Grant.Token,
		Due: job.Task.Due, Start: job.Task.Due.Add(job.Lateness()), TakenOver: job.Crashes > 0,
	}
}

// settled is told by the scheduler what the store said to a handler's result.
func (f *recordFile) settled(s core.Settlement, err error) {
	if err != nil || s.Outcome != core.Done {
		return
	}
	if err := f.append(record{Event: accepted, ID: s.Grant.ID, Token: s.Grant.Token}); err != nil {
		slog.Error("can't write a record", "err", err)
	}
}

// readRecords reads a worker's file, also while the worker writes to it: a last
// line without an end is left out. A worker that was killed before it could make
// its file has no records.
func readRecords(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var records []record
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return records, nil
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		records = append(records, r)
		data = rest
	}
}

// running returns how many runs in records were started and not finished.
func running(records []record) int {
	n := 0
	for _, r := range records {
		switch r.Event {
		case started:
			n++
		case finished:
			n--
		}
	}
	return n
}

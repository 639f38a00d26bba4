package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/examples/internal/display"
	"github.com/dueclaim/dueclaim/examples/internal/parts"
	"github.com/dueclaim/dueclaim/examples/internal/workers"
)

// table is the name of the tasks' table. On a server it stays, empty, after a run.
const table = "dueclaim_quickstart"

// demo is one run of the example.
type demo struct {
	settings
	folder string // temporary: the records and, by default, the database
	choice parts.Choice
	parts  *parts.Parts
	team   *workers.Team
	began  time.Time
	first  time.Duration // after began the first task is due
	show   *display.Progress
}

// run does everything once: schedule, work, kill, wait, count.
func run(ctx context.Context, s settings) (sum summary, err error) {
	d := &demo{settings: s, show: display.New(os.Stdout), began: time.Now()}
	d.folder, err = os.MkdirTemp("", "quickstart-")
	if err != nil {
		return sum, err
	}
	defer os.RemoveAll(d.folder)

	d.choice = parts.Choice{
		Index: s.index, Store: s.store, Table: table,
		Queue: "run-" + strings.ToLower(rand.Text()[:10]), // runs don't meet, even on one server
	}.WithFile(d.folder)
	d.parts, err = parts.Open(ctx, d.choice)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, d.parts.Close()) }()
	if err := d.parts.Store.Migrate(ctx); err != nil {
		return sum, err
	}
	defer func() {
		err = errors.Join(err, d.parts.Clean(context.WithoutCancel(ctx)))
	}()
	d.show.Say(fmt.Sprintf("quickstart: %d tasks over %v, %d workers; %v", s.tasks, s.over, s.workers, d.choice))

	if err := d.schedule(ctx); err != nil {
		return sum, err
	}
	d.team, err = workers.StartTeam(s.workers, func(name string) orders {
		return orders{Parts: d.choice, Lease: s.lease, Records: d.recordsOf(name)}
	})
	defer func() { err = errors.Join(err, d.team.Stop()) }()
	if err != nil {
		return sum, err
	}
	if err := d.watch(ctx); err != nil {
		return sum, err
	}
	return d.sum(ctx)
}

// schedule stores all tasks, spread evenly; the first one is due two seconds after
// the start, later where there are so many that storing them takes a while.
func (d *demo) schedule(ctx context.Context) error {
	producer, err := core.NewProducer(d.parts.Index, d.parts.Store, core.ProducerOptions{})
	if err != nil {
		return err
	}
	call, err := producer.NewCall(ctx) // Call.Now is the time by the store's clock
	if err != nil {
		return err
	}
	d.first = 2*time.Second + time.Duration(d.tasks/10_000)*time.Second
	tasks := make([]core.Task, d.tasks)
	for i := range tasks {
		work := payload{WorkMillis: 2 + i*7%29} // most tasks take some milliseconds
		if i%10 == 0 {
			work.WorkMillis = 250 // and some are longer
		}
		data, err := json.Marshal(work)
		if err != nil {
			return err
		}
		tasks[i] = core.Task{
			ID: core.ID(fmt.Sprintf("task-%06d", i)), Kind: kind, Payload: data,
			Due: call.Now.Add(d.first + d.over*time.Duration(i)/time.Duration(d.tasks)),
		}
	}
	return producer.ScheduleCall(ctx, call, tasks...)
}

func (d *demo) recordsOf(worker string) string {
	return filepath.Join(d.folder, worker+".records")
}

// watch shows how it goes, kills a worker half way, and returns when no task is
// left or nothing has happened for too long.
func (d *demo) watch(ctx context.Context) error {
	defer d.show.Done()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	// Long enough for everything to be taken over from the killed worker.
	const takeOver, slack = 2 * time.Second, 10 * time.Second
	last, lastChange := -1, time.Now()
	for {
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-tick.C:
		}
		counts, err := d.parts.Counts(ctx)
		if err != nil {
			return err
		}
		done := counts[claim.DoneState]
		if done != last {
			last, lastChange = done, time.Now()
		}
		elapsed := time.Since(d.began)
		d.show.Show(fmt.Sprintf("%5.1f s  waiting %d, running %d, done %d of %d; %d workers",
			elapsed.Seconds(), counts[claim.Pending], counts[claim.Running], done, d.tasks, d.team.Len()))
		if counts[claim.Pending]+counts[claim.Running] == 0 {
			return nil
		}
		if elapsed > d.first+d.over && time.Since(lastChange) > d.lease+takeOver+slack {
			return nil // the summary tells what is missing
		}
		if err := d.team.Check(); err != nil {
			return err
		}
		if d.team.Killed() == "" && elapsed > d.first+d.over/2 {
			d.killOne(elapsed > d.first+d.over)
		}
	}
}

// killOne kills the last worker, in a moment when it has tasks running, or in any
// case when there is no more time to wait for one.
func (d *demo) killOne(now bool) {
	name := d.team.Last()
	records, err := readRecords(d.recordsOf(name))
	if err == nil && running(records) == 0 && !now {
		return
	}
	d.team.KillLast()
	d.show.Say(fmt.Sprintf("%5.1f s  killed %s", time.Since(d.began).Seconds(), name))
}

// sum stops the workers and computes the summary from the store and the records.
func (d *demo) sum(ctx context.Context) (summary, error) {
	if err := d.team.Stop(); err != nil {
		return summary{}, err
	}
	files, err := filepath.Glob(d.recordsOf("*"))
	if err != nil {
		return summary{}, err
	}
	var records []record
	for _, file := range files {
		more, err := readRecords(file)
		if err != nil {
			return summary{}, err
		}
		records = append(records, more...)
	}
	counts, err := d.parts.Counts(ctx)
	if err != nil {
		return summary{}, err
	}
	sum := summarize(d.tasks, counts[claim.DoneState], records, d.team.Killed())
	sum.took = time.Since(d.began)
	return sum, nil
}

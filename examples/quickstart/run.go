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

// patience is how long workers get to finish what they have in the end.
const patience = 15 * time.Second

// demo is one run of the example.
type demo struct {
	settings
	folder  string // temporary: the records and, by default, the database
	choice  parts.Choice
	parts   *parts.Parts
	workers []*workers.Process
	victim  *workers.Process // the one that is killed
	began   time.Time
	first   time.Duration // after began the first task is due
	show    *display.Progress
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
	}
	if s.store == "sqlite" {
		d.choice.Store = "sqlite:" + filepath.Join(d.folder, "quickstart.db")
	}
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
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(); err != nil {
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

func (d *demo) start() error {
	for i := range d.settings.workers {
		name := fmt.Sprintf("worker-%d", i+1)
		p, err := workers.Start(name, orders{Parts: d.choice, Lease: d.lease, Records: d.recordsOf(name)})
		if err != nil {
			return err
		}
		d.workers = append(d.workers, p)
	}
	return nil
}

// stop ends the workers that are left.
func (d *demo) stop() error {
	left := d.workers
	d.workers = nil
	return workers.StopAll(patience, left...)
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
			elapsed.Seconds(), counts[claim.Pending], counts[claim.Running], done, d.tasks, len(d.workers)))
		if counts[claim.Pending]+counts[claim.Running] == 0 {
			return nil
		}
		if elapsed > d.first+d.over && time.Since(lastChange) > d.lease+takeOver+slack {
			return nil // the summary tells what is missing
		}
		if err := d.checkWorkers(); err != nil {
			return err
		}
		if d.victim == nil && elapsed > d.first+d.over/2 {
			d.killOne(elapsed > d.first+d.over)
		}
	}
}

// checkWorkers fails when a worker ended by itself.
func (d *demo) checkWorkers() error {
	for _, p := range d.workers {
		select {
		case <-p.Ended():
			return fmt.Errorf("%s ended by itself", p.Name)
		default:
		}
	}
	return nil
}

// killOne kills the last worker, in a moment when it has tasks running, or in any
// case when there is no more time to wait for one.
func (d *demo) killOne(now bool) {
	p := d.workers[len(d.workers)-1]
	records, err := readRecords(d.recordsOf(p.Name))
	if err == nil && running(records) == 0 && !now {
		return
	}
	p.Kill()
	d.victim, d.workers = p, d.workers[:len(d.workers)-1]
	d.show.Say(fmt.Sprintf("%5.1f s  killed %s", time.Since(d.began).Seconds(), p.Name))
}

// sum stops the workers and computes the summary from the store and the records.
func (d *demo) sum(ctx context.Context) (summary, error) {
	names := []string{}
	for _, p := range d.workers {
		names = append(names, p.Name)
	}
	if err := d.stop(); err != nil {
		return summary{}, err
	}
	victim := "nobody"
	if d.victim != nil {
		victim = d.victim.Name
		names = append(names, victim)
	}
	var records []record
	for _, name := range names {
		more, err := readRecords(d.recordsOf(name))
		if err != nil {
			return summary{}, err
		}
		records = append(records, more...)
	}
	counts, err := d.parts.Counts(ctx)
	if err != nil {
		return summary{}, err
	}
	sum := summarize(d.tasks, counts[claim.DoneState], records, victim)
	sum.took = time.Since(d.began)
	return sum, nil
}

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

const opening = `<!-- Written by make bench. Don't edit: change bench/ and run it again, or bench's -report. -->
# Benchmarks

dueclaim beside [River](https://github.com/riverqueue/river) (Postgres) and
[asynq](https://github.com/hibiken/asynq) (Redis), each workload in one run on one machine, the
systems in turn, round by round. A figure is the median of the rounds, with the least and the
greatest behind it (least..greatest). Machines drift by tens of per cent within minutes, so
compare what stands in one table, and CPU time rather than rates.

`

const methods = `
## How it is measured

- Client, workers and all servers share the machine. CPU time is user and system time of
  the benchmark's process and of each server with its children.
- A task has a payload of about 100 bytes of JSON, which each system's handler decodes, but
  for the one named "raw payload". The handler does nothing else. dueclaim's claims and
  results are fenced and its attempts counted; the peers do what they do by themselves.
- Time runs from the start of the workers until all results are recorded: by dueclaim's
  observer and by River's subscription, as in River's own benchmark. asynq doesn't say when
  a result is recorded; there it is the end of the handler, in its favour.
- After each run the system is asked what is left, and the harness counts how often each
  task ran. A run with a task that is left, lost, or ran twice is an error, and no figure.
- Each run has a new database (dropped afterwards) or an emptied Redis. Between filling and
  working, Postgres runs VACUUM ANALYZE and CHECKPOINT, for dueclaim and River alike.
- Pools: 16 connections to a database, 64 to Redis, for all. 2,000 workers, as River's own
  benchmark has, for all but those "as it comes".
- The databases sync each commit to the disk, as they do by default. Redis runs with its
  default of no append-only file: for dueclaim it is an index that can be rebuilt, for asynq
  the only place where tasks are.
- River keeps finished jobs and deletes them by age. asynq keeps them with Retention.
- A task's id is a number with leading zeros ("task-000000042"), in the order of scheduling;
  River numbers its rows itself, asynq draws random ids.
`

// pictures are the files beside the page.
var pictures = map[string]func(*page) []byte{
	"benchmarks-throughput.svg": (*page).throughput,
	"benchmarks-lateness.svg":   (*page).late,
	"benchmarks-growth.svg":     (*page).grows,
}

// Write writes the page, its pictures and the figures into a folder.
func Write(dir string, r *figures.Results) error {
	var data bytes.Buffer
	if err := r.Encode(&data); err != nil {
		return err
	}
	files := map[string][]byte{"benchmarks.json": data.Bytes(), "benchmarks.md": []byte(markdown(r))}
	for name, draw := range pictures {
		files[name] = draw(&page{Results: r})
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// section is a workload's part of the page.
type section struct {
	workload, title, picture, text string
	tables                         func(*page)
}

var sections = []section{
	{"drain", "Drain", "benchmarks-throughput.svg", "Tasks that are due already; the time until all of them are done.", (*page).drain},
	{"lateness", "Lateness", "benchmarks-lateness.svg", "Start minus due time, of tasks that were scheduled before they were due. *Not ahead*: with a negative\nOptions.Ahead, which claims a task only once it is due. *Early*: how many started before they were due.\nThe herd is due 0.3 s into a second; asynq keeps due times in whole seconds. CPU time includes the scheduling. *Scheduling behind by*: how\nmuch later than meant a scheduling call returned, at most; what is less than the time ahead delays no task.", (*page).lateness},
	{"schedule", "Schedule", "", "Tasks a second that are scheduled, with no worker running; each call returns when its tasks are stored:\non the disk by dueclaim and River, in Redis's memory by asynq, which has no call for several tasks.\nRiver's batches are InsertManyFast.", (*page).schedule},
	{"growth", "Growth", "benchmarks-growth.svg", "What a due task costs while others, due in a day, a millisecond apart, are pending. For dueclaim: take, claim, settle and remove\nby its adapters, 500 a call, two at a time; for the peers: a drain. The rebuild is the time until a starting\nscheduler has filled an emptied index from the database, which it does in pages with pauses, while\nit works. Buffers of the databases: see the servers' settings.", (*page).growth},
	{"contention", "Contention", "", "Several schedulers on the same queue, in one process. First a drain, as above. Then with schedulers that run already as the tasks become due at one instant,\nfrom which on time is taken. Wasted: claims that the store didn't grant.", (*page).contention},
	{"idle", "Idle", "", "Workers with nothing to do. Redis counts commands inside scripts too; Postgres's count is of transactions,\nthose of its own cleaning up included.", (*page).idle},
	{"limits", "Limits", "", "The same steps by plain statements on a plain table (or a sorted set), 8 connections, and by dueclaim's adapters,\nwhich fence, tell reasons, and recognise repeats.", (*page).limits},
}

func markdown(r *figures.Results) string {
	p := &page{Results: r}
	p.WriteString(opening)
	p.setting()
	p.WriteString(methods)
	p.better()
	for _, s := range sections {
		p.section(s)
	}
	return p.String()
}

// setting says where and with what.
func (p *page) setting() {
	m := p.Machine
	fmt.Fprintf(p, "Machine: %s, %d cores, %s of memory, %s.\n", m.CPU, m.Cores, m.Memory, m.System)
	fmt.Fprint(p, "\nTo repeat it: `make bench` (about 35 minutes on two cores; `ARGS=-full` for 10 million pending tasks\ntoo, `ARGS='-run drain -rounds 5'` for a part).\n")
	var rows [][]string
	for _, program := range p.Programs {
		args := "–"
		if program.Args != "" {
			args = "`" + program.Args + "`"
		}
		rows = append(rows, []string{program.Name, program.Version, args})
	}
	textTable(&p.Builder, []string{"", "version", "set beside the defaults"}, rows)
	rows = nil
	for _, s := range p.Systems {
		rows = append(rows, []string{s.Name, escapeCell(s.Settings)})
	}
	textTable(&p.Builder, []string{"system", "settings"}, rows)
	rows = nil
	for _, w := range p.Workloads {
		rows = append(rows, []string{w.Name, "`" + escapeCell(cmp.Or(w.Command, "?")) + "`", cmp.Or(w.Commit, "?"), w.Date, fmt.Sprint(w.Rounds), number(w.Seconds) + " s", escapeCell(w.Sizes)})
	}
	textTable(&p.Builder, []string{"workload", "by, in bench/,", "commit", "at, UTC,", "rounds", "took", "sizes"}, rows)
	for _, missing := range p.Missing {
		fmt.Fprintf(p, "\nNot measured: %s\n", escapeCell(missing))
	}
}

func (p *page) section(s section) {
	if p.Run(s.workload) == nil {
		return
	}
	fmt.Fprintf(p, "\n## %s\n\n%s\n", s.title, s.text)
	if s.picture != "" {
		fmt.Fprintf(p, "\n![%s](%s)\n", s.title, s.picture)
	}
	s.tables(p)
}

// Summary writes the tables of some workloads.
func Summary(w io.Writer, r *figures.Results, workloads []string) error {
	p := &page{Results: r}
	for _, s := range sections {
		if p.Run(s.workload) != nil && slices.Contains(workloads, s.workload) {
			fmt.Fprintf(p, "\n%s\n", strings.ToUpper(s.title))
			s.tables(p)
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

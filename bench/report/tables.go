package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

// Names that the harness gives.
const (
	ours     = "dueclaim redis+postgres"
	river    = "river"
	asynq    = "asynq"
	heap     = "dueclaim heapindex alone"
	herd     = "herd"
	deleted  = "deleted"
	kept     = "kept"
	notAhead = ", not ahead"
	running  = "running "
	// The peers' names with their defaults end so.
	plain = ", as it comes"
)

// page is the report in the making.
type page struct {
	strings.Builder
	*figures.Results
}

// in returns a workload's records of one case, in the order of the systems.
func (p *page) in(workload, kase string) []*figures.Record {
	var list []*figures.Record
	for _, rec := range p.Records {
		if rec.Workload == workload && (kase == "" || rec.Case == kase) {
			list = append(list, rec)
		}
	}
	slices.SortStableFunc(list, func(a, b *figures.Record) int { return cmp.Compare(p.rank(a.System), p.rank(b.System)) })
	return list
}

// rank is a system's place in tables: as they are listed, variants behind their
// system.
func (p *page) rank(name string) float64 {
	for i, s := range p.Systems {
		if s.Name == name {
			return float64(i)
		}
		if s.Name+notAhead == name {
			return float64(i) + 0.5
		}
	}
	return float64(len(p.Systems))
}

// cases are a workload's, numbers by their size and before others.
func (p *page) cases(workload string) []string {
	var list []string
	for _, rec := range p.Records {
		if rec.Workload == workload && !slices.Contains(list, rec.Case) {
			list = append(list, rec.Case)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int {
		m, err1 := strconv.Atoi(a)
		n, err2 := strconv.Atoi(b)
		switch {
		case err1 == nil && err2 == nil:
			return cmp.Compare(m, n)
		case err1 == nil:
			return -1
		case err2 == nil:
			return 1
		}
		return 0
	})
	return list
}

// systemsOf are those that have records in a workload.
func (p *page) systemsOf(workload string) []string {
	var list []string
	for _, rec := range p.in(workload, "") {
		if !slices.Contains(list, rec.System) {
			list = append(list, rec.System)
		}
	}
	return list
}

// drained are the records of a way to drain. River can only keep finished jobs, and is
// among those that delete them as well.
func (p *page) drained(kase string) []*figures.Record {
	records := p.in("drain", kase)
	if kase == deleted && len(records) > 0 {
		for _, rec := range p.in("drain", kept) {
			if strings.HasPrefix(rec.System, river) {
				records = append(records, rec)
			}
		}
	}
	return records
}

// drainedName is a system's name among those that drain in a way.
func drainedName(rec *figures.Record, kase string) string {
	if rec.Case != kase {
		return rec.System + " (keeps all the same)"
	}
	return rec.System
}

func (p *page) drain() {
	for _, kase := range []string{deleted, kept} {
		records := p.drained(kase)
		if len(records) == 0 {
			continue
		}
		p.WriteString("\n### Finished tasks are " + kase + "\n")
		us := p.Get("drain", kase, ours, "rate")
		var rows [][]string
		for _, rec := range records {
			m := rec.Metrics
			database := slices.Concat(m["cpu postgres"], m["cpu mariadb"], m["cpu mysql"])
			rows = append(rows, []string{drainedName(rec, kase), count(m["tasks"].Median()), spread(m["rate"]), times(us, m["rate"]),
				spread(m["cpu"]), middle(m["cpu client"]), middle(m["cpu redis"]), middle(database)})
		}
		table(&p.Builder, []string{"", "tasks", "tasks a second", ours + " is", "CPU µs a task", "client", "Redis", "database"}, rows)
	}
}

// middle is a sample's median alone.
func middle(s figures.Sample) string { return number(s.Median()) }

func (p *page) lateness() {
	for _, kase := range p.cases("lateness") {
		title := pending(kase) + " tasks a second"
		if kase == herd {
			title = "A herd, due at one instant"
		}
		p.WriteString("\n### " + title + "\n")
		var rows [][]string
		for _, rec := range p.in("lateness", kase) {
			m := rec.Metrics
			rows = append(rows, []string{rec.System, durations(m["p50"]), durations(m["p99"]), durations(m["max"]), count(m["early"].Median()), duration(m["least"].Min()), spread(m["cpu"]), duration(m["scheduled late by"].Max())})
		}
		table(&p.Builder, []string{"", "p50", "p99", "max", "early", "earliest", "CPU µs a task", "scheduling behind by"}, rows)
	}
}

func (p *page) schedule() {
	cases := p.cases("schedule")
	head := []string{""}
	for _, kase := range cases {
		name := "in batches of " + pending(kase)
		if kase == "1" {
			name = "one a call"
		}
		head = append(head, name, "CPU µs a task")
	}
	var rows [][]string
	for _, system := range p.systemsOf("schedule") {
		cells := []string{system}
		for _, kase := range cases {
			cells = append(cells, spread(p.Get("schedule", kase, system, "rate")), middle(p.Get("schedule", kase, system, "cpu")))
		}
		rows = append(rows, cells)
	}
	table(&p.Builder, head, rows)
}

func (p *page) contention() {
	p.contending("Tasks a second, drained by schedulers that start", "")
	p.contending("Tasks a second, by schedulers that run already", running)
}

// contending is a table of the cases that begin with prefix, a number of schedulers
// each.
func (p *page) contending(title, prefix string) {
	var cases []string
	for _, kase := range p.cases("contention") {
		if n, ok := strings.CutPrefix(kase, prefix); ok && !strings.Contains(n, " ") {
			cases = append(cases, n)
		}
	}
	if len(cases) == 0 {
		return
	}
	slices.SortFunc(cases, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	first, last := cases[0], cases[len(cases)-1]
	head := append([]string{title}, cases...)
	head = append(head, last+" against "+first, "CPU µs a task at "+last, "wasted claims at "+last)
	get := func(kase, system, metric string) figures.Sample {
		return p.Get("contention", prefix+kase, system, metric)
	}
	var rows [][]string
	for _, system := range p.systemsOf("contention") {
		if len(get(first, system, "rate")) == 0 {
			continue
		}
		cells := []string{system}
		for _, kase := range cases {
			cells = append(cells, spread(get(kase, system, "rate")))
		}
		wasted := "–"
		if s := get(last, system, "wasted"); len(s) > 0 {
			wasted = spread(s) + " %"
		}
		rows = append(rows, append(cells, times(get(last, system, "rate"), get(first, system, "rate")), middle(get(last, system, "cpu")), wasted))
	}
	table(&p.Builder, head, rows)
}

func (p *page) idle() {
	var rows [][]string
	for _, rec := range p.in("idle", "idle") {
		m := rec.Metrics
		database := slices.Concat(m["queries postgres"], m["queries mariadb"])
		cpu := slices.Concat(m["cpu postgres"], m["cpu mariadb"])
		rows = append(rows, []string{rec.System, middle(m["queries redis"]), middle(database), spread(m["cpu"]), middle(m["cpu client"]), middle(m["cpu redis"]), middle(cpu)})
	}
	table(&p.Builder, []string{"", "Redis commands/s", "database queries/s", "CPU, thousandths of a core", "client", "Redis", "database"}, rows)
}

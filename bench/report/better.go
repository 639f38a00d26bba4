package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

// comparison is a figure in which a peer may be better than dueclaim on Redis and
// Postgres.
type comparison struct {
	workload, metric string
	more             bool // more is better
	name             func(kase string) string
	why              map[string]string // by peer: the reason, where it is better
}

// Reasons that lie in how the systems work, whatever the figures are.
const (
	inMemory    = "asynq keeps a task in Redis's memory only, and storing one is a script there. dueclaim's task is on the database's disk before the call returns."
	oneServer   = "asynq has one server to ask. dueclaim has a database to look into beside Redis."
	riverTold   = "River has one server to ask, which tells it of new jobs. dueclaim asks Redis and the database."
	riverCopy   = "River's InsertManyFast is a COPY, and there is no index beside the database to tell."
	riverWaits  = "River makes jobs available every five seconds, many at a time, and so starts many at a time. dueclaim looks whenever a task is due."
	perTaskOnly = "asynq makes no row, index entry or log record on a disk for a task."
)

var comparisons = []comparison{
	{"drain", "rate", true, func(kase string) string { return "drain, " + kase + ": tasks a second" }, map[string]string{asynq: perTaskOnly}},
	{"drain", "cpu", false, func(kase string) string { return "drain, " + kase + ": CPU time" }, map[string]string{asynq: perTaskOnly}},
	{"lateness", "p50", false, func(kase string) string { return "lateness, " + lateCase(kase) + ": p50" }, nil},
	{"lateness", "p99", false, func(kase string) string { return "lateness, " + lateCase(kase) + ": p99" }, nil},
	{"lateness", "max", false, func(kase string) string { return "lateness, " + lateCase(kase) + ": max" }, nil},
	{"lateness", "cpu", false, func(kase string) string { return "lateness, " + lateCase(kase) + ": CPU time" }, map[string]string{river: riverWaits, asynq: oneServer}},
	{"schedule", "rate", true, func(kase string) string { return "schedule, " + pending(kase) + " a call: tasks a second" }, map[string]string{river: riverCopy, asynq: inMemory}},
	{"schedule", "cpu", false, func(kase string) string { return "schedule, " + pending(kase) + " a call: CPU time" }, map[string]string{river: riverCopy, asynq: inMemory}},
	{"contention", "rate", true, func(kase string) string { return "contention, " + kase + " schedulers: tasks a second" }, map[string]string{asynq: perTaskOnly}},
	{"idle", "cpu", false, func(string) string { return "idle: CPU time" }, map[string]string{river: riverTold, asynq: oneServer}},
}

func lateCase(kase string) string {
	if kase == herd {
		return "the herd"
	}
	return pending(kase) + " a second"
}

// better lists each figure in which a peer's median is better than dueclaim's on
// Redis and Postgres, with the reason where it is known and lies in how they work.
func (p *page) better() {
	if len(p.Records) == 0 {
		return
	}
	p.WriteString("\n## Where a peer is better\n")
	var rows [][]string
	var reasons []string
	for _, c := range comparisons {
		for _, kase := range p.cases(c.workload) {
			us := p.Get(c.workload, kase, ours, c.metric)
			for _, system := range p.systemsOf(c.workload) {
				them := p.Get(c.workload, kase, system, c.metric)
				if strings.HasPrefix(system, "dueclaim") || len(us) == 0 || len(them) == 0 || !c.wins(them, us) || c.early(p, kase, system) {
					continue
				}
				rows = append(rows, []string{c.name(kase), system, c.value(them), c.value(us)})
				if why := c.why[strings.TrimSuffix(system, plain)]; why != "" && !slices.Contains(reasons, why) {
					reasons = append(reasons, why)
				}
			}
		}
	}
	if len(rows) == 0 {
		fmt.Fprintf(p, "\nIn no figure of this run is a peer's median better than that of %s.\n", ours)
	} else {
		fmt.Fprintf(p, "\nMedians that are better than those of %s:\n", ours)
		table(&p.Builder, []string{"", "peer", "its figure", ours}, rows)
	}
	if len(reasons) > 0 {
		p.WriteString("\nWhy:\n\n")
	}
	for _, why := range reasons {
		fmt.Fprintf(p, "- %s\n", why)
	}
	p.tooEarly()
}

// early says whether a peer's lateness can't be compared, as it starts tasks before
// they are due.
func (c comparison) early(p *page, kase, system string) bool {
	return c.workload == "lateness" && c.metric != "cpu" && p.Get("lateness", kase, system, "early").Max() > 0
}

// tooEarly names the peers whose lateness was not compared.
func (p *page) tooEarly() {
	var names []string
	for _, rec := range p.in("lateness", "") {
		if !strings.HasPrefix(rec.System, "dueclaim") && rec.Metrics["early"].Max() > 0 && !slices.Contains(names, rec.System) {
			names = append(names, rec.System)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(p, "\nStarts before the due time are no gain: where a peer has some, its lateness is in the tables, and not\ncompared here (%s).\n", strings.Join(names, "; "))
	}
}

func (c comparison) wins(them, us figures.Sample) bool {
	if c.more {
		return them.Median() > us.Median()
	}
	return them.Median() < us.Median()
}

func (c comparison) value(s figures.Sample) string {
	switch {
	case c.workload == "lateness" && c.metric != "cpu":
		return durations(s)
	case c.workload == "idle":
		return spread(s) + " thousandths of a core"
	case c.metric == "cpu":
		return spread(s) + " µs a task"
	}
	return spread(s)
}

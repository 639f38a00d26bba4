package report

import (
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

// comparison is a figure in which a peer may be better than dueclaim on Redis and
// Postgres.
type comparison struct {
	workload, metric string
	more             bool // more is better
	name             func(kase string) string
	why              map[string]string // the reason, where a peer is better
}

const (
	memoryOnly = "asynq keeps a task in Redis's memory only, and a call is one script there; dueclaim's task is on the database's disk before the call returns."
	oneServer  = "asynq asks one server; dueclaim has a database to look into beside Redis."
)

var comparisons = []comparison{
	{"drain", "rate", true, func(kase string) string { return "drain, finished tasks " + kase + ", tasks a second" }, nil},
	{"drain", "cpu", false, func(kase string) string { return "drain, finished tasks " + kase + ", CPU time" }, nil},
	{"lateness", "p50", false, func(kase string) string { return "lateness, " + lateCase(kase) + ", p50" }, map[string]string{
		asynq: "A start before the due time counts as less late here: asynq cuts due times to whole seconds.",
	}},
	{"lateness", "p99", false, func(kase string) string { return "lateness, " + lateCase(kase) + ", p99" }, map[string]string{
		asynq: "A start before the due time counts as less late here: asynq cuts due times to whole seconds.",
	}},
	{"lateness", "cpu", false, func(kase string) string { return "lateness, " + lateCase(kase) + ", CPU time" }, map[string]string{
		river: "River makes tasks ready in batches, every five seconds, and starts many at a time, late; dueclaim looks whenever one is due.",
		asynq: oneServer,
	}},
	{"schedule", "rate", true, func(kase string) string { return "schedule, " + pending(kase) + " a call, tasks a second" }, map[string]string{
		river: "InsertManyFast is a COPY, and River has no index beside the database to tell.",
		asynq: memoryOnly,
	}},
	{"schedule", "cpu", false, func(kase string) string { return "schedule, " + pending(kase) + " a call, CPU time" }, map[string]string{
		river: "InsertManyFast is a COPY, and River has no index beside the database to tell.",
		asynq: memoryOnly,
	}},
	{"contention", "rate", true, func(kase string) string { return "contention, " + kase + " schedulers, tasks a second" }, nil},
	{"idle", "cpu", false, func(string) string { return "idle, CPU time" }, map[string]string{
		river: "River has one server to ask, and is told of new tasks by it; dueclaim asks Redis and the database.",
		asynq: oneServer,
	}},
}

func lateCase(kase string) string {
	if kase == herd {
		return "the herd"
	}
	return pending(kase) + " a second"
}

// better lists each figure in which a peer's median is better than dueclaim's on
// Redis and Postgres. It says why where the reason is known and has nothing to do
// with the figures' size.
func (p *page) better() {
	p.WriteString("\n## Where a peer is better\n")
	none := true
	for _, c := range comparisons {
		for _, kase := range p.cases(c.workload) {
			us := p.Get(c.workload, kase, ours, c.metric)
			for _, system := range p.systemsOf(c.workload) {
				them := p.Get(c.workload, kase, system, c.metric)
				if strings.HasPrefix(system, "dueclaim") || len(us) == 0 || len(them) == 0 || !c.wins(them, us) {
					continue
				}
				if none {
					fmt.Fprintf(p, "\nThe peers' medians that are better than those of %s in this run:\n\n", ours)
					none = false
				}
				fmt.Fprintf(p, "- **%s**: %s %s, %s %s.%s\n", c.name(kase), system, c.value(them), ours, c.value(us), p.reason(c, system))
			}
		}
	}
	if none && len(p.Records) > 0 {
		fmt.Fprintf(p, "\nIn none of the figures below is a peer's median better than that of %s in this run.\n", ours)
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

func (p *page) reason(c comparison, system string) string {
	why := c.why[strings.TrimSuffix(system, plain)]
	if why == "" {
		return ""
	}
	return " " + why
}

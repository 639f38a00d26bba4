package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

const (
	labels  = 240 // the column of names
	numbers = 150 // the column of numbers behind bars
)

// colour is a system's, the same in all pictures: dueclaim's on Postgres, others of
// dueclaim's, River, asynq, and those as they come.
func colour(system string) string {
	switch {
	case strings.HasSuffix(system, plain):
		return "c4"
	case system == river:
		return "c3"
	case system == asynq:
		return "c5"
	case strings.HasPrefix(system, ours):
		return "c0"
	case strings.Contains(system, "mariadb"):
		return "c1"
	}
	return "c2"
}

// throughput draws the drains as bars, with the spread of the rounds as whiskers.
// The pair without a database is left out: next to its bar all others vanish.
func (p *page) throughput() []byte {
	pic := newPicture("Tasks a second, drained: medians, whiskers from the slowest round to the fastest")
	a := axis{from: margin + labels, to: width - margin - numbers, most: 1}
	for _, rec := range p.in("drain", "") {
		if !strings.HasSuffix(rec.System, "memory") {
			a.most = math.Max(a.most, rec.Metrics["rate"].Max())
		}
	}
	for _, kase := range []string{deleted, kept} {
		pic.text("quiet", margin, pic.y+15, "finished tasks are "+kase)
		pic.y += row
		for _, rec := range p.drained(kase) {
			if strings.HasSuffix(rec.System, "memory") {
				continue
			}
			pic.bar(drainedName(rec, kase), rec.Metrics["rate"], a, colour(rec.System))
		}
		pic.y += row / 2
	}
	return pic.svg("Throughput of dueclaim and its peers")
}

func (p *picture) bar(system string, s figures.Sample, a axis, colour string) {
	p.text("", margin, p.y+15, system)
	p.rect(colour+" bar", a.from, p.y+3, a.at(s.Median())-a.from, row-6, fmt.Sprintf("%s: %s a second", system, spread(s)))
	middle := p.y + row/2
	p.line("spread", a.at(s.Min()), middle, a.at(s.Max()), middle)
	for _, end := range []float64{s.Min(), s.Max()} {
		p.line("spread", a.at(end), middle-4, a.at(end), middle+4)
	}
	p.text("number", a.at(s.Max())+8, p.y+15, number(s.Median()))
	p.y += row
}

// late draws lateness on a logarithmic axis: a bar from p50 to the maximum, with a
// mark at p99. What was early stands at the left end, and is counted beside.
func (p *page) late() []byte {
	pic := newPicture("Start minus due time: from p50 to the maximum, a mark at p99 (medians of the rounds)")
	a := axis{least: 0.1, most: 10_000, from: margin + labels, to: width - margin - numbers, log: true}
	top := pic.y + row
	for _, kase := range p.cases("lateness") {
		title := pending(kase) + " tasks a second"
		if kase == herd {
			title = "a herd, due at one instant"
		}
		pic.y += row
		pic.text("quiet", margin, pic.y-6, title)
		for _, rec := range p.in("lateness", kase) {
			pic.latenessBar(rec, a)
		}
	}
	bottom := pic.y + 4
	for _, v := range a.ticks() {
		pic.line("grid", a.at(v), top, a.at(v), bottom)
		pic.text("quiet middle", a.at(v), bottom+15, duration(v))
	}
	pic.y = bottom + row
	return pic.svg("Lateness of dueclaim and its peers")
}

func (p *picture) latenessBar(rec *figures.Record, a axis) {
	m := rec.Metrics
	p50, p99, most := m["p50"].Median(), m["p99"].Median(), m["max"].Median()
	p.text("", margin, p.y+15, rec.System)
	p.rect(colour(rec.System)+" bar", a.at(p50), p.y+5, a.at(most)-a.at(p50), row-10, fmt.Sprintf("%s: p50 %s, p99 %s, max %s", rec.System, duration(p50), duration(p99), duration(most)))
	p.line("spread", a.at(p99), p.y+2, a.at(p99), p.y+row-2)
	note := duration(most)
	if early := m["early"].Median(); early > 0 {
		note += fmt.Sprintf(", %s early", count(early))
	}
	p.text("number", a.to+10, p.y+15, note)
	p.y += row
}

// grows draws the cost of a task against the number of pending ones, as a multiple
// of the cost at the fewest.
func (p *page) grows() []byte {
	pic := newPicture("CPU time of a task against pending tasks, as a multiple of that at the fewest")
	type curve struct {
		system string
		at, of []float64
	}
	var curves []curve
	x := axis{least: math.Inf(1), from: margin + 60, to: width - margin - 230, log: true}
	y := axis{least: 0, most: 2, from: pic.y + 300, to: pic.y + 10}
	for _, system := range p.systemsOf("growth") {
		metric := "cpu"
		if system == heap {
			metric = "took"
		}
		c := curve{system: system}
		for _, kase := range p.cases("growth") {
			s := p.Get("growth", kase, system, metric)
			if len(s) == 0 {
				continue
			}
			var n float64
			if _, err := fmt.Sscan(kase, &n); err != nil {
				continue
			}
			c.at, c.of = append(c.at, n), append(c.of, s.Median())
		}
		if len(c.at) == 0 {
			continue
		}
		first := c.of[0]
		for i := range c.of {
			c.of[i] /= first
			y.most = math.Max(y.most, math.Ceil(c.of[i]))
		}
		x.least, x.most = math.Min(x.least, c.at[0]), math.Max(x.most, c.at[len(c.at)-1])
		curves = append(curves, c)
	}
	if x.most <= x.least {
		x.least, x.most = 1, 10
	}
	for _, v := range y.ticks() {
		pic.line("grid", x.from, y.at(v), x.to, y.at(v))
		pic.text("quiet right", x.from-8, y.at(v)+4, number(v)+" ×")
	}
	for _, v := range x.ticks() {
		pic.text("quiet middle", x.at(v), y.from+18, thousands(int64(math.Round(v))))
	}
	for i, c := range curves {
		xs, ys := make([]float64, len(c.at)), make([]float64, len(c.at))
		for k := range xs {
			xs[k], ys[k] = x.at(c.at[k]), y.at(c.of[k])
		}
		pic.path(colour(c.system), xs, ys)
		legend := y.to + float64(i+1)*row
		pic.rect(colour(c.system)+" bar", x.to+25, legend-10, 12, 12, c.system)
		pic.text("", x.to+45, legend, c.system)
	}
	pic.y = y.from + 30
	return pic.svg("Cost of a task by the number of pending tasks")
}

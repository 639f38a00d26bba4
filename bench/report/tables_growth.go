package report

import (
	"strings"

	"github.com/dueclaim/dueclaim/bench/figures"
)

func (p *page) growth() {
	cases := p.casesOf("growth", func(rec *figures.Record) bool { return rec.System != heap })
	if len(cases) > 0 {
		p.growing(cases, "CPU µs a task", "cpu", true)
		p.growing(cases, "Tasks a second", "rate", true)
		p.growing(cases, "Bytes in Redis a pending task", "bytes", false)
		p.growing(cases, "Rebuild of an empty index, in seconds", "rebuild", false)
	}
	if cases := p.casesOf("growth", func(rec *figures.Record) bool { return rec.System == heap }); len(cases) > 0 {
		p.WriteString("\n### The index in the process alone, by entries\n")
		head, took, bytes := []string{heap}, []string{"µs an entry, take + remove + add"}, []string{"bytes an entry, beside its id"}
		for _, kase := range cases {
			head = append(head, pending(kase))
			took = append(took, spread(p.Get("growth", kase, heap, "took")))
			bytes = append(bytes, middle(p.Get("growth", kase, heap, "bytes")))
		}
		table(&p.Builder, head, [][]string{took, bytes})
	}
}

// casesOf are those with a record that suits.
func (p *page) casesOf(workload string, suits func(*figures.Record) bool) []string {
	var list []string
	for _, kase := range p.cases(workload) {
		for _, rec := range p.in(workload, kase) {
			if suits(rec) {
				list = append(list, kase)
				break
			}
		}
	}
	return list
}

// growing is a table of one metric by pending tasks; with a last column for how
// much it is at the most of them against the fewest.
func (p *page) growing(cases []string, title, metric string, factor bool) {
	head := []string{title + ", by pending"}
	for _, kase := range cases {
		head = append(head, pending(kase))
	}
	if factor {
		head = append(head, "most against fewest")
	}
	var rows [][]string
	for _, system := range p.systemsOf("growth") {
		if system == heap {
			continue
		}
		cells := []string{system}
		var first, last figures.Sample
		for _, kase := range cases {
			s := p.Get("growth", kase, system, metric)
			if len(s) > 0 {
				if last = s; first == nil {
					first = s
				}
			}
			cells = append(cells, spread(s))
		}
		if first == nil {
			continue
		}
		if factor {
			cells = append(cells, times(last, first))
		}
		rows = append(rows, cells)
	}
	table(&p.Builder, head, rows)
}

// limits is a table a server: the plain statements, and what dueclaim reaches.
func (p *page) limits() {
	const plainPrefix, oursPrefix = "plain statements, ", "dueclaim, "
	for _, system := range p.systemsOf("limits") {
		server, ok := strings.CutPrefix(system, plainPrefix)
		if !ok {
			continue
		}
		var rows [][]string
		for _, step := range p.cases("limits") {
			raw, own := p.Get("limits", step, system, "rate"), p.Get("limits", step, oursPrefix+server, "rate")
			if len(raw) == 0 {
				continue
			}
			share := "–"
			if len(own) > 0 {
				share = number(100*own.Median()/raw.Median()) + " %"
			}
			rows = append(rows, []string{step, spread(raw), spread(own), share})
		}
		table(&p.Builder, []string{server + ", rows a second", "plain statements", "dueclaim's adapter", "share"}, rows)
	}
}

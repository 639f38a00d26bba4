package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/bench/figures"
)

// fixed is a small run with made-up figures: River is better at scheduling in
// batches, asynq is early.
func fixed() *figures.Results {
	r := &figures.Results{
		Machine:   figures.Machine{CPU: "Test & <CPU>", Cores: 2, Memory: "1 GiB", System: "linux"},
		Programs:  []figures.Program{{Name: "postgres", Version: "15.1", Args: "-c x=1"}},
		Systems:   []figures.System{{Name: ours, Settings: "Slots 2000"}, {Name: "dueclaim redis+mariadb"}, {Name: "dueclaim heap+memory"}, {Name: river, Settings: "a|b"}, {Name: asynq}},
		Missing:   []string{"mysql: not found"},
		Workloads: []figures.Run{{Name: "drain", Rounds: 3}, {Name: "lateness", Rounds: 1}, {Name: "schedule"}, {Name: "growth"}, {Name: "contention"}, {Name: "limits"}},
	}
	add := func(workload, kase, system, metric string, values ...float64) {
		for _, v := range values {
			r.Add(workload, kase, system, metric, v)
		}
	}
	for _, kase := range []string{deleted, kept} {
		add("drain", kase, ours, "rate", 50_000, 40_000, 60_000)
		add("drain", kase, ours, "tasks", 50_000)
		add("drain", kase, ours, "cpu", 35.25)
		add("drain", kase, "dueclaim heap+memory", "rate", 400_000)
		add("drain", kase, asynq, "rate", 5000)
	}
	add("drain", kept, river, "rate", 20_000)
	for _, kase := range []string{"1000", herd} {
		add("lateness", kase, ours, "p50", 0.4)
		add("lateness", kase, ours, "p99", 4)
		add("lateness", kase, ours, "max", 40)
		add("lateness", kase, ours, "early", 0)
		add("lateness", kase, asynq, "p50", -300)
		add("lateness", kase, asynq, "p99", 1)
		add("lateness", kase, asynq, "max", 1900)
		add("lateness", kase, asynq, "early", 12)
		add("lateness", kase, ours+notAhead, "p50", 2)
		add("lateness", kase, ours+notAhead, "p99", 2)
		add("lateness", kase, ours+notAhead, "max", 2)
	}
	add("schedule", "1000", ours, "rate", 65_000)
	add("schedule", "1000", river, "rate", 70_000)
	add("growth", "10000", ours, "cpu", 30)
	add("growth", "1000000", ours, "cpu", 33)
	add("growth", "10000", heap, "took", 0.5)
	add("growth", "1000000", heap, "took", 0.9)
	add("contention", "1", ours, "rate", 40_000)
	add("contention", "8", ours, "rate", 36_000)
	add("contention", "8", ours, "wasted", 0.5)
	add("contention", running+"1", ours, "rate", 50_000)
	add("contention", running+"16", ours, "rate", 60_000)
	add("limits", "claim", "plain statements, postgres", "rate", 80_000)
	add("limits", "claim", "dueclaim, postgres", "rate", 60_000)
	return r
}

func TestPageSaysWhatTheFiguresAre(t *testing.T) {
	text := markdown(fixed())
	for _, want := range []string{
		"50,000 (40,000..60,000)",                 // median and spread
		"| asynq | – | 5,000 | 10.0 × |",          // ratio of medians
		"river (keeps all the same) | – | 20,000", // shown where the others delete
		"| 0.40 ms |", "| 1.90 s |", // units fit the size
		"| dueclaim redis+postgres, not ahead | 2.00", // variants have a row
		"| 30.0 | 33.0 | 1.10 × |",                    // growth
		"| 0.90 × | – | 0.50 % |",                     // contention
		"| dueclaim redis+postgres | 50,000 | 60,000 | 1.20 × | – | – |",
		"| claim | 80,000 | 60,000 | 75.0 % |", // share of the limit
		`a\|b`,                                 // no broken table
		"Not measured: mysql: not found",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "NaN")
	assert.NotContains(t, text, "## Idle", "it was not measured")
}

func TestPageSaysWhereAPeerIsBetter(t *testing.T) {
	_, after, ok := strings.Cut(markdown(fixed()), "## Where a peer is better")
	require.True(t, ok)
	part, _, _ := strings.Cut(after, "\n## ")
	assert.Contains(t, part, "| schedule, 1,000 a call: tasks a second | river | 70,000 | 65,000 |")
	assert.Contains(t, part, riverCopy)
	assert.NotContains(t, part, "drain")
	assert.NotContains(t, part, "| lateness", "what is early isn't less late")
	assert.Contains(t, part, "not\ncompared here (asynq)")

	r := fixed()
	r.Forget("schedule")
	r.Forget("lateness")
	assert.Contains(t, markdown(r), "In no figure of this run")
}

func TestPicturesAreWellFormed(t *testing.T) {
	for name, draw := range pictures {
		for _, r := range []*figures.Results{fixed(), {}} { // of no figures, too
			svg := draw(&page{Results: r})
			d := xml.NewDecoder(bytes.NewReader(svg))
			elements := 0
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err, "%s: %s", name, svg)
				if start, ok := token.(xml.StartElement); ok {
					elements++
					for _, a := range start.Attr {
						assert.NotContains(t, a.Value, "NaN", "%s: %s of %s", name, a.Name.Local, start.Name.Local)
						assert.NotContains(t, a.Value, "Inf", "%s: %s of %s", name, a.Name.Local, start.Name.Local)
					}
				}
			}
			assert.Greater(t, elements, 3, name)
		}
	}
}

func TestPicturesShowEachSystem(t *testing.T) {
	p := &page{Results: fixed()}
	bars := string(p.throughput())
	assert.Equal(t, 2, strings.Count(bars, ">"+asynq+"</text>"), "deleted and kept")
	assert.Contains(t, bars, ">river (keeps all the same)</text>")
	assert.NotContains(t, bars, ">dueclaim heap+memory</text>")
	assert.Contains(t, string(p.late()), "1.90 s, 12 early")
	assert.Equal(t, 2, strings.Count(string(p.grows()), "<polyline"))
}

func TestAxisPutsValuesInPlace(t *testing.T) {
	linear := axis{least: 0, most: 10, from: 100, to: 200}
	assert.Equal(t, []float64{100, 150, 200, 200}, []float64{linear.at(-1), linear.at(5), linear.at(10), linear.at(11)})
	assert.Equal(t, []float64{0, 2, 4, 6, 8, 10}, linear.ticks())
	decades := axis{least: 0.1, most: 1000, from: 0, to: 400, log: true}
	assert.InDelta(t, 200, decades.at(10), 1e-9)
	assert.Equal(t, 0.0, decades.at(-5), "what is early stands at the end")
	assert.Len(t, decades.ticks(), 5)
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0012: "0.001", 0.25: "0.25", 3.14159: "3.14", 42.42: "42.4", 99.99: "100", 123.4: "123",
		1234: "1,230", 52_345: "52,300", 1_234_567: "1,230,000", -456: "-456", -1234: "-1,230",
	} {
		assert.Equal(t, want, number(v), "%v", v)
	}
	assert.Equal(t, "–", spread(nil))
	assert.Equal(t, "2.00 (1.00..3.00)", spread(figures.Sample{3, 1, 2}))
	assert.Equal(t, "–", times(figures.Sample{1}, nil))
	assert.Equal(t, "2.00 ×", times(figures.Sample{4}, figures.Sample{2}))
	assert.Equal(t, "1,000,000", pending("1000000"))
	assert.Equal(t, "herd", pending("herd"))
}

func TestWriteMakesAllFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Write(dir, fixed()))
	page, err := os.ReadFile(filepath.Join(dir, "benchmarks.md"))
	require.NoError(t, err)
	for name := range pictures {
		assert.FileExists(t, filepath.Join(dir, name))
		assert.Contains(t, string(page), "("+name+")")
	}
	again, err := figures.Read(filepath.Join(dir, "benchmarks.json"))
	require.NoError(t, err)
	assert.Equal(t, markdown(fixed()), markdown(again), "the page can be written again from the file")
}

package heapindex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

var ctx = context.Background()

var start = time.UnixMilli(1_900_000_000_000).UTC()

func filled(n int) (*heapindex.Index, []core.Entry) {
	entries := randomEntries("order", n)
	idx := heapindex.New()
	_ = idx.Add(ctx, entries)
	return idx, entries
}

// randomEntries returns n entries that are due within an hour.
func randomEntries(name string, n int) []core.Entry {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = core.Entry{ID: core.ID(fmt.Sprintf("%s-%012d", name, i)), Due: start.Add(time.Duration(r.IntN(3_600_000)) * time.Millisecond)}
	}
	return entries
}

// BenchmarkIndex measures every method.
func BenchmarkIndex(b *testing.B) {
	conformance.BenchmarkIndex(b, func(*testing.B) core.TimeIndex { return heapindex.New() })
}

// BenchmarkLife: the life of entries at a steady size, one operation an entry. A
// batch of 500, as many as a scheduler claims or settles at once, is added; the
// first 500 are taken; the 500 taken before them, now done, are removed. The
// same entries go through a plain heap, which can do less, in turns with it.
//
// The figures are the lower quartile of all batches, so that what else runs on
// the machine counts little.
func BenchmarkLife(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			idx, entries := filled(size)
			var plain plainHeap
			for _, e := range entries {
				plain.push(plainItem{e.Due.UnixMilli(), e.ID})
			}
			l := life{idx: idx, until: start.Add(10 * time.Hour)}
			batches := slices.Collect(slices.Chunk(randomEntries("fresh", b.N), lifeBatch))
			_ = l.batch(batches[0][:0])
			runtime.GC()
			var onIndex, onPlain []float64
			b.ReportAllocs()
			b.ResetTimer()
			for turn := range slices.Chunk(batches, 20) {
				for _, fresh := range turn {
					onIndex = append(onIndex, perEntry(fresh, l.batch))
				}
				for _, fresh := range turn {
					onPlain = append(onPlain, perEntry(fresh, plain.batch))
				}
			}
			b.ReportMetric(0, "ns/op") // both together mean nothing
			b.ReportMetric(lowerQuartile(onIndex), "index-ns/entry")
			b.ReportMetric(lowerQuartile(onPlain), "plain-ns/entry")
		})
	}
}

const lifeBatch = 500

// life drives an index as a scheduler does.
type life struct {
	idx   *heapindex.Index
	until time.Time
	gone  []core.Entry
}

func (l *life) batch(fresh []core.Entry) error {
	_ = l.idx.Add(ctx, fresh)
	l.until = l.until.Add(time.Millisecond)
	ids, _, _ := l.idx.Take(ctx, start.Add(2*time.Hour), l.until, lifeBatch)
	err := l.idx.Remove(ctx, l.gone)
	l.gone = l.gone[:0]
	for _, id := range ids {
		l.gone = append(l.gone, core.Entry{ID: id, Due: l.until})
	}
	return err
}

func perEntry(fresh []core.Entry, batch func([]core.Entry) error) float64 {
	began := time.Now()
	_ = batch(fresh)
	return float64(time.Since(began)) / float64(len(fresh))
}

func lowerQuartile(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/4]
}

// BenchmarkMemory reports the bytes of an entry beside its id.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int{100_000, 600_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			for b.Loop() {
				entries := make([]core.Entry, size)
				for i := range entries {
					entries[i] = core.Entry{ID: core.ID(fmt.Sprintf("order-%012d", i)), Due: start.Add(time.Duration(i*7919%3_600_000) * time.Millisecond)}
				}
				before := heapBytes()
				idx := heapindex.New()
				_ = idx.Add(ctx, entries)
				after := heapBytes()
				b.ReportMetric(float64(after-before)/float64(size), "B/entry")
				runtime.KeepAlive(idx)
				runtime.KeepAlive(entries)
			}
		})
	}
}

// BenchmarkMove measures a reschedule by id at a million entries.
func BenchmarkMove(b *testing.B) {
	idx, entries := filled(1_000_000)
	r := rand.New(rand.NewPCG(3, 3))
	moves := make([]core.Move, 0, 100)
	b.ResetTimer()
	for done := 0; done < b.N; done += 100 {
		moves = moves[:0]
		for range min(100, b.N-done) {
			e := &entries[r.IntN(len(entries))]
			to := start.Add(time.Duration(r.IntN(3_600_000)) * time.Millisecond)
			moves = append(moves, core.Move{ID: e.ID, From: e.Due, To: to})
			e.Due = to
		}
		_ = idx.Move(ctx, moves)
	}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package heapindex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

var ctx = context.Background()

var start = time.UnixMilli(1_900_000_000_000).UTC()

func filled(n int) (*heapindex.Index, []core.Entry) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = core.Entry{ID: core.ID(fmt.Sprintf("order-%012d", i)), Due: start.Add(time.Duration(r.IntN(3_600_000)) * time.Millisecond)}
	}
	idx := heapindex.New()
	_ = idx.Add(ctx, entries)
	return idx, entries
}

// BenchmarkIndex measures every method.
func BenchmarkIndex(b *testing.B) {
	conformance.BenchmarkIndex(b, func(*testing.B) core.TimeIndex { return heapindex.New() })
}

// BenchmarkAddTake: the life of a task in the index, at a steady size. One
// operation is one entry added, taken and removed; the reported figures split it.
func BenchmarkAddTake(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			idx, _ := filled(size)
			r := rand.New(rand.NewPCG(2, 2))
			fresh := make([]core.Entry, b.N)
			for i := range fresh {
				fresh[i] = core.Entry{ID: core.ID(fmt.Sprintf("fresh-%012d", i)), Due: start.Add(time.Duration(r.IntN(3_600_000)) * time.Millisecond)}
			}
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			var adding, taking time.Duration
			until := start.Add(10 * time.Hour)
			for done := 0; done < b.N; {
				n := min(100, b.N-done)
				t0 := time.Now()
				_ = idx.Add(ctx, fresh[done:done+n])
				t1 := time.Now()
				ids, _, _ := idx.Take(ctx, start.Add(2*time.Hour), until, n)
				t2 := time.Now()
				adding += t1.Sub(t0)
				taking += t2.Sub(t1)
				gone := make([]core.Entry, len(ids))
				for i, id := range ids {
					gone[i] = core.Entry{ID: id, Due: until}
				}
				_ = idx.Remove(ctx, gone)
				done += n
			}
			b.ReportMetric(float64(adding.Nanoseconds())/float64(b.N), "add-ns/entry")
			b.ReportMetric(float64(taking.Nanoseconds())/float64(b.N), "take-ns/entry")
		})
	}
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

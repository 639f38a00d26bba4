package redisindex_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/redisindex"
)

// BenchmarkIndex measures every method.
func BenchmarkIndex(b *testing.B) {
	conformance.BenchmarkIndex(b, func(b *testing.B) core.TimeIndex { return benchIndex(b) })
}

func benchIndex(b *testing.B) *redisindex.Index {
	o, err := redis.ParseURL(testserver.Redis(b))
	if err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(o)
	b.Cleanup(func() { _ = client.Close() })
	idx, err := redisindex.New(client, redisindex.Options{Queue: rand.Text()})
	if err != nil {
		b.Fatal(err)
	}
	return idx
}

// BenchmarkLife is the life of a task in the index: added, taken, removed, in
// batches as a busy scheduler makes them, with 100,000 others that are not due.
// One operation is one task.
func BenchmarkLife(b *testing.B) {
	for _, batch := range []int{1, 10, 100, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			idx := benchIndex(b)
			others := make([]core.Entry, 100_000)
			for i := range others {
				others[i] = entry(fmt.Sprintf("other-%09d", i), 1_000_000+i)
			}
			if err := idx.Add(b.Context(), others); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += batch {
				entries := make([]core.Entry, min(batch, b.N-done))
				for i := range entries {
					entries[i] = entry(fmt.Sprintf("order-%09d", done+i), i)
				}
				if err := idx.Add(b.Context(), entries); err != nil {
					b.Fatal(err)
				}
				ids, _, err := idx.Take(b.Context(), at(1000), at(2_000_000), batch)
				if err != nil || len(ids) != len(entries) {
					b.Fatal(len(ids), err)
				}
				for i, id := range ids {
					entries[i] = core.Entry{ID: id, Due: at(2_000_000)}
				}
				if err := idx.Remove(b.Context(), entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

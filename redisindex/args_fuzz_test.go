package redisindex_test

import (
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/redisindex"
)

// FuzzScriptArguments: whatever ids, instants and members go into the scripts, the
// entries of others stay where they stand, in this queue and in the next one.
func FuzzScriptArguments(f *testing.F) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		f.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	f.Cleanup(func() { _ = client.Close(); server.Close() })
	for _, s := range []string{
		"a", "'] .. redis.call('FLUSHALL') .. ['", "KEYS[1]", "ARGV[1]", "XX", "LT", "GT", "CH", "INCR", "NX", "WITHSCORES", "LIMIT", "-inf", "+inf", "(0", "0", "[a",
		"\x00", "a\r\nFLUSHALL\r\n", "$5", "*1\r\n", "%d%s", "größe", "'; DROP TABLE t; --", "", " ", "\xff",
	} {
		f.Add(s, "b", int64(5), int64(900), 1.5)
		f.Add("b", s, int64(-5), int64(math.MaxInt64), math.Inf(-1))
	}
	f.Add("x", "y", int64(253402300799999), int64(0), math.NaN())
	f.Fuzz(func(t *testing.T, first, second string, from, to int64, junk float64) {
		ctx := t.Context()
		server.FlushAll()
		idx, err := redisindex.New(client, redisindex.Options{Queue: "q"})
		require.NoError(t, err)
		other, err := redisindex.New(client, redisindex.Options{Queue: "q2"})
		require.NoError(t, err)
		due := func(ms int64) time.Time { // what core lets pass
			return time.UnixMilli(int64(uint64(ms) % 253402300800000)).UTC()
		}
		// Bystanders: one that is not due, and one of another queue.
		last := time.UnixMilli(253402300799999).UTC()
		stays := core.Entry{ID: "bystander", Due: last}
		require.NoError(t, idx.Add(ctx, []core.Entry{stays}))
		require.NoError(t, other.Add(ctx, []core.Entry{{ID: "bystander", Due: due(from)}}))

		var entries []core.Entry
		var moves []core.Move
		for _, id := range []string{first, second} {
			if core.ID(id).Check() != nil || id == "bystander" || len(entries) == 1 && id == first {
				continue // core sends each id once, and none that is none
			}
			entries = append(entries, core.Entry{ID: core.ID(id), Due: due(from)})
			moves = append(moves, core.Move{ID: core.ID(id), From: due(from), To: due(to)})
		}
		require.NoError(t, idx.Add(ctx, entries))
		require.NoError(t, idx.AddMissing(ctx, entries))
		require.NoError(t, idx.Move(ctx, moves))
		got, err := idx.Due(ctx, last, 100)
		require.NoError(t, err)
		require.Len(t, got, len(entries)+1)
		for _, e := range got {
			if e.ID != stays.ID {
				require.Equal(t, due(to), e.Due, "%q", e.ID)
			}
		}
		// Somebody else writes members that may be no entries at all.
		if !math.IsNaN(junk) {
			for _, m := range []string{first, second} {
				if m != "bystander" {
					require.NoError(t, client.ZAdd(ctx, "dueclaim:{q}:due", redis.Z{Score: junk, Member: m}).Err())
				}
			}
		}
		_, _, err = idx.Take(ctx, last.Add(-time.Millisecond), last, 100)
		require.NoError(t, err)
		_, err = idx.Due(ctx, last, 100)
		require.NoError(t, err)
		for i := range entries {
			entries[i].Due = last
		}
		require.NoError(t, idx.Remove(ctx, entries))
		got, err = idx.Due(ctx, last, 100)
		require.NoError(t, err)
		require.Contains(t, got, stays)
		got, err = other.Due(ctx, last, 100)
		require.NoError(t, err)
		require.Equal(t, []core.Entry{{ID: "bystander", Due: due(from)}}, got)
		for _, key := range server.Keys() {
			require.Contains(t, []string{"dueclaim:{q}:due", "dueclaim:{q}:junk", "dueclaim:{q2}:due"}, key, "no key comes of a value")
		}
	})
}

package redisindex_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

type reports struct {
	mu   sync.Mutex
	seen map[string]float64
}

func (r *reports) add(member string, score float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]float64{}
	}
	r.seen[member] = score
}

var badMembers = map[string]float64{
	"":                           float64(at(1).UnixMilli()),
	"nul\x00":                    float64(at(1).UnixMilli()),
	"line\n":                     float64(at(2).UnixMilli()),
	" space":                     float64(at(1).UnixMilli()),
	"not utf-8 \xff\xfe":         float64(at(3).UnixMilli()),
	strings.Repeat("x", 256):     float64(at(1).UnixMilli()),
	"minus infinity":             math.Inf(-1),
	"infinity":                   math.Inf(1),
	"negative":                   -1,
	"negative-fraction":          -0.5,
	"after-9999":                 253402300800000,
	"microseconds":               1.9e15,
	"nanoseconds":                1.9e18,
	"not-an-id-and-no-score\x01": math.Inf(-1),
	"a-fraction-after-9999":      253402300799999.5,
}

func writeJunk(t *testing.T, client *redis.Client, key string) {
	t.Helper()
	for member, score := range badMembers {
		require.NoError(t, client.ZAdd(t.Context(), key, redis.Z{Score: score, Member: member}).Err())
	}
}

func TestJunkIsNeitherTakenNorInTheWayAndIsReportedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		var got reports
		idx, key := newIndexJunk(t, client, got.add)
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 5), entry("b", 6), entry("c", 900)}))
		writeJunk(t, client, key)
		ids, _, err := idx.Take(t.Context(), at(10), at(1000), 2)
		require.NoError(t, err)
		assert.Equal(t, []core.ID{"a", "b"}, ids, "the limit counts ids, and junk before them takes no place")
		for range 8 { // one in eight looks for wrong scores, which are never in the way
			ids, next, err := idx.Take(t.Context(), at(10), at(1000), 2)
			require.NoError(t, err)
			assert.Empty(t, ids)
			assert.Equal(t, at(900), next)
		}
		assert.Equal(t, badMembers, got.seen)
		assert.Equal(t, []core.Entry{entry("c", 900), entry("a", 1000), entry("b", 1000)}, all(t, idx))
		n, err := client.ZCard(t.Context(), key).Result()
		require.NoError(t, err)
		assert.EqualValues(t, 3, n, "no junk is left among the entries")
		kept, err := client.ZRangeWithScores(t.Context(), strings.TrimSuffix(key, "due")+"junk", 0, -1).Result()
		require.NoError(t, err)
		found := map[string]float64{}
		for _, z := range kept {
			found[z.Member.(string)] = z.Score
		}
		assert.Equal(t, badMembers, found, "set aside with the score that it was found with")
	})
}

func TestDueSkipsAndSetsAsideJunk(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		var got reports
		idx, key := newIndexJunk(t, client, got.add)
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 5), entry("b", 6), entry("c", 900)}))
		writeJunk(t, client, key)
		for range 2 {
			due, err := idx.Due(t.Context(), at(10), 2)
			require.NoError(t, err)
			assert.Equal(t, []core.Entry{entry("a", 5), entry("b", 6)}, due)
		}
		assert.Equal(t, badMembers, got.seen)
	})
}

func TestAHeadFullOfJunkIsPassedInOneCall(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx, key := newIndexJunk(t, client, nil)
		var zs []redis.Z
		for i := range 1500 {
			zs = append(zs, redis.Z{Score: float64(at(i / 100).UnixMilli()), Member: fmt.Sprintf("junk\x00%d", i)})
		}
		require.NoError(t, client.ZAdd(t.Context(), key, zs...).Err())
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 50)}))
		ids, next, err := idx.Take(t.Context(), at(100), at(1000), 10)
		require.NoError(t, err)
		assert.Equal(t, []core.ID{"a"}, ids)
		assert.True(t, next.IsZero(), "got %s", next)
		n, err := client.ZCard(t.Context(), strings.TrimSuffix(key, "due")+"junk").Result()
		require.NoError(t, err)
		assert.EqualValues(t, 1000, n, "the junk set is bounded")
	})
}

func TestAFractionOfAMillisecondCountsAsRoundedUp(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		var got reports
		idx, key := newIndexJunk(t, client, got.add)
		put := func() {
			require.NoError(t, client.ZAdd(t.Context(), key, redis.Z{Score: float64(at(4).UnixMilli()) + 0.25, Member: "a"}).Err())
		}
		put()
		due, err := idx.Due(t.Context(), at(4), 10)
		require.NoError(t, err)
		assert.Empty(t, due, "never early")
		_, next, err := idx.Take(t.Context(), at(4), at(50), 10)
		require.NoError(t, err)
		assert.Equal(t, at(5), next)
		assert.Equal(t, []core.Entry{entry("a", 5)}, all(t, idx))
		require.NoError(t, idx.Move(t.Context(), []core.Move{{ID: "a", From: at(5), To: at(7)}}))
		assert.Equal(t, []core.Entry{entry("a", 7)}, all(t, idx))
		put()
		require.NoError(t, idx.Remove(t.Context(), []core.Entry{entry("a", 5)}))
		assert.Empty(t, all(t, idx))
		put()
		ids, _, err := idx.Take(t.Context(), at(5), at(50), 10)
		require.NoError(t, err)
		assert.Equal(t, []core.ID{"a"}, ids)
		assert.Empty(t, got.seen)
	})
}

func TestJunkThatCanNotBeSetAsideFailsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, client *redis.Client) {
		idx, key := newIndexJunk(t, client, func(member string, _ float64) { t.Errorf("reported %q", member) })
		require.NoError(t, client.Set(t.Context(), strings.TrimSuffix(key, "due")+"junk", "of another type", 0).Err())
		require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("a", 5)}))
		writeJunk(t, client, key)
		before, err := client.ZCard(t.Context(), key).Result()
		require.NoError(t, err)
		due, err := idx.Due(t.Context(), at(10), 1)
		require.NoError(t, err)
		assert.Equal(t, []core.Entry{entry("a", 5)}, due)
		ids, _, err := idx.Take(t.Context(), at(10), at(100), 1)
		require.NoError(t, err)
		assert.Equal(t, []core.ID{"a"}, ids)
		after, err := client.ZCard(t.Context(), key).Result()
		require.NoError(t, err)
		assert.Equal(t, before, after, "and nothing is dropped")
	})
}

// The index works in the scheduler's goroutines: a panic there would end the program.
func TestAPanicOfOnJunkCostsThatReport(t *testing.T) {
	client, _ := double(t)
	told := 0
	idx, key := newIndexJunk(t, client, func(string, float64) { told++; panic("told in passing: OnJunk panics here on purpose") })
	require.NoError(t, idx.Add(t.Context(), []core.Entry{entry("good", 1)}))
	writeJunk(t, client, key)
	ids, _, err := idx.Take(t.Context(), at(10), at(1000), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.ID{"good"}, ids)
	assert.Greater(t, told, 1, "the others are reported too")
}

package unknowns

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
	"github.com/dueclaim/dueclaim/redisindex"
)

// beforeEach is what stands in the index when a step is done.
var beforeEach = []core.Entry{{ID: "a", Due: at(10)}, {ID: "b", Due: at(20)}, {ID: "c", Due: at(30)}, {ID: "d", Due: at(9_000)}}

// step is a method of an index, whose writes are idempotent but for take's.
type step struct {
	name string
	do   func(ctx context.Context, idx *redisindex.Index) error
	left map[core.ID]int // what a single execution leaves, in ms after base
}

var steps = []step{
	{"add", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Add(ctx, []core.Entry{{ID: "new", Due: at(5)}, {ID: "a", Due: at(11)}, {ID: "d", Due: at(40)}})
	}, map[core.ID]int{"new": 5, "a": 10, "b": 20, "c": 30, "d": 40}},
	{"add missing", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.AddMissing(ctx, []core.Entry{{ID: "new", Due: at(5)}, {ID: "a", Due: at(1)}})
	}, map[core.ID]int{"new": 5, "a": 10, "b": 20, "c": 30, "d": 9_000}},
	// To where a further move would find it, if moves added up.
	{"move", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Move(ctx, []core.Move{{ID: "a", From: at(10), To: at(20)}, {ID: "b", From: at(20), To: at(30)}, {ID: "c", From: at(1), To: at(2)}})
	}, map[core.ID]int{"a": 20, "b": 30, "c": 30, "d": 9_000}},
	{"remove", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Remove(ctx, []core.Entry{{ID: "a", Due: at(10)}, {ID: "b", Due: at(21)}})
	}, map[core.ID]int{"b": 20, "c": 30, "d": 9_000}},
	{"due", func(ctx context.Context, idx *redisindex.Index) error {
		got, err := idx.Due(ctx, at(20), 10)
		if err == nil && (len(got) != 2 || got[0].ID != "a" || got[1].ID != "b") {
			return fmt.Errorf("%w: due are %v", errWrong, got)
		}
		return err
	}, map[core.ID]int{"a": 10, "b": 20, "c": 30, "d": 9_000}},
	{"take", func(ctx context.Context, idx *redisindex.Index) error {
		_, _, err := idx.Take(ctx, at(20), at(5_000), 1)
		return err
	}, map[core.ID]int{"a": 5_000, "b": 20, "c": 30, "d": 9_000}},
}

var errWrong = fmt.Errorf("a wrong answer")

// redisPlace has clients of one server, through a proxy and around it.
type redisPlace struct {
	proxy           *wireproxy.Proxy
	direct, through *redis.Client
}

// repeaters are who repeats what failed.
var repeaters = map[string]func(o *redis.Options){
	"the client library repeats": func(o *redis.Options) {
		o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 3, time.Millisecond, 2*time.Millisecond
	},
	"the caller repeats": func(o *redis.Options) { o.MaxRetries = -1 },
}

func onRedis(t *testing.T, change func(o *redis.Options)) redisPlace {
	o, err := redis.ParseURL(testserver.Redis(t))
	require.NoError(t, err)
	p := redisPlace{proxy: wireproxy.New(t, wireproxy.Redis, o.Addr), direct: redis.NewClient(o)}
	own := *o
	own.Addr, own.ReadTimeout = p.proxy.Addr(), 150*time.Millisecond
	change(&own)
	p.through = redis.NewClient(&own)
	t.Cleanup(func() { _ = p.through.Close(); _ = p.direct.Close() })
	return p
}

func indexOn(t *testing.T, client *redis.Client, queue string) *redisindex.Index {
	idx, err := redisindex.New(client, redisindex.Options{Queue: queue})
	require.NoError(t, err)
	return idx
}

// content is all that an index has.
func content(t *testing.T, idx *redisindex.Index) map[core.ID]time.Time {
	entries, err := idx.Due(t.Context(), at(1_000_000), 100)
	require.NoError(t, err)
	all := map[core.ID]time.Time{}
	for _, e := range entries {
		all[e.ID] = e.Due
	}
	return all
}

// https://github.com/redis/go-redis/issues/2339: a command whose reply is lost is
// executed again by the client library, three times by default. What a step of the
// index leaves must be what a single execution leaves.
func TestR54AStepOfTheIndexThatIsExecutedAgainLeavesWhatOneLeaves(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	var mu sync.Mutex
	broken := map[string]int{}
	t.Run("where", func(t *testing.T) {
		for who, change := range repeaters {
			t.Run(who, func(t *testing.T) {
				t.Parallel()
				p := onRedis(t, change)
				for _, s := range steps {
					for _, cut := range wireproxy.Cuts() {
						t.Run(fmt.Sprintf("%s/%s", s.name, cut), func(t *testing.T) {
							lost := p.proxy.Injected()[cut]
							loseThrice(t, p, s, cut, rand.Text())
							require.Equal(t, lost+3, p.proxy.Injected()[cut], "three were broken")
						})
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for cut, n := range p.proxy.Injected() {
					broken[cut.String()] += n
				}
			})
		}
	})
	t.Attr("dueclaim.figure", fmt.Sprintf("index steps broken three times in a row: %d steps by %d cuts, repeated in %d ways; broken %v",
		len(steps), len(wireproxy.Cuts()), len(repeaters), broken))
}

func loseThrice(t *testing.T, p redisPlace, s step, cut wireproxy.Cut, queue string) {
	direct, twin, idx := indexOn(t, p.direct, queue), indexOn(t, p.direct, queue+" twin"), indexOn(t, p.through, queue)
	require.NoError(t, direct.Add(t.Context(), beforeEach))
	require.NoError(t, twin.Add(t.Context(), beforeEach))
	require.NoError(t, s.do(t.Context(), twin))
	left := map[core.ID]time.Time{}
	for id, ms := range s.left {
		left[id] = at(ms)
	}
	require.Equal(t, left, content(t, twin), "executed once")
	_, err := idx.Due(t.Context(), at(0), 1)
	require.NoError(t, err, "a connection stands")

	fault := wireproxy.Fault{Cut: cut, Needle: queue, Code: "LOADING", Text: "Redis is loading the dataset in memory"}
	for range 3 {
		p.proxy.Arm(fault)
	}
	failed := 0
	for end := time.Now().Add(20 * time.Second); ; failed++ {
		if err = s.do(t.Context(), idx); err == nil {
			break
		}
		require.NotErrorIs(t, err, errWrong)
		require.Less(t, time.Now(), end, "%v", err)
	}
	if s.name == "take" {
		// A client library that repeats it takes more than its caller hears of. What is
		// lost stands at until, and nothing is away.
		assert.GreaterOrEqual(t, failed, 3, "each is seen by the caller")
		now := content(t, direct)
		for _, e := range beforeEach {
			require.Contains(t, now, e.ID)
			if due := now[e.ID]; !due.Equal(e.Due) {
				assert.Equal(t, at(5_000), due, "%s is where it was, or at until", e.ID)
			}
		}
		assert.Len(t, now, len(beforeEach))
		return
	}
	want := content(t, twin)
	if cut != wireproxy.AfterRequest {
		assert.Equal(t, want, content(t, direct))
		return
	}
	assert.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, content(t, direct)) }, 10*time.Second, 5*time.Millisecond)
}

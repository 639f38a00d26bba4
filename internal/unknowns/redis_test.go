package unknowns

import (
	"context"
	"crypto/rand"
	"fmt"
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
}

var steps = []step{
	{"add", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Add(ctx, []core.Entry{{ID: "new", Due: at(5)}, {ID: "a", Due: at(11)}, {ID: "d", Due: at(40)}})
	}},
	{"add missing", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.AddMissing(ctx, []core.Entry{{ID: "new", Due: at(5)}, {ID: "a", Due: at(1)}})
	}},
	// To where a further move would find it, if moves added up.
	{"move", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Move(ctx, []core.Move{{ID: "a", From: at(10), To: at(20)}, {ID: "b", From: at(20), To: at(30)}, {ID: "c", From: at(1), To: at(2)}})
	}},
	{"remove", func(ctx context.Context, idx *redisindex.Index) error {
		return idx.Remove(ctx, []core.Entry{{ID: "a", Due: at(10)}, {ID: "b", Due: at(21)}})
	}},
	{"due", func(ctx context.Context, idx *redisindex.Index) error {
		got, err := idx.Due(ctx, at(20), 10)
		if err == nil && (len(got) != 2 || got[0].ID != "a" || got[1].ID != "b") {
			return fmt.Errorf("%w: due are %v", errWrong, got)
		}
		return err
	}},
	{"take", func(ctx context.Context, idx *redisindex.Index) error {
		_, _, err := idx.Take(ctx, at(20), at(5_000), 1)
		return err
	}},
}

var errWrong = fmt.Errorf("a wrong answer")

// redisPlace has indexes of one queue through a proxy and around it.
type redisPlace struct {
	proxy   *wireproxy.Proxy
	direct  *redis.Client
	through map[string]*redis.Client // by who repeats
}

func onRedis(t *testing.T) redisPlace {
	o, err := redis.ParseURL(testserver.Redis(t))
	require.NoError(t, err)
	p := redisPlace{proxy: wireproxy.New(t, wireproxy.Redis, o.Addr), through: map[string]*redis.Client{}}
	client := func(change func(o *redis.Options)) *redis.Client {
		own := *o
		change(&own)
		c := redis.NewClient(&own)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	p.direct = client(func(*redis.Options) {})
	p.through["the client library repeats"] = client(func(o *redis.Options) {
		o.Addr, o.ReadTimeout, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = p.proxy.Addr(), 150*time.Millisecond, 3, time.Millisecond, 2*time.Millisecond
	})
	p.through["the caller repeats"] = client(func(o *redis.Options) {
		o.Addr, o.ReadTimeout, o.MaxRetries = p.proxy.Addr(), 150*time.Millisecond, -1
	})
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
	p := onRedis(t)
	names := map[string]int{}
	for who, client := range p.through {
		for _, s := range steps {
			for _, cut := range wireproxy.Cuts() {
				queue := rand.Text()
				t.Run(fmt.Sprintf("%s/%s/%s", who, s.name, cut), func(t *testing.T) {
					lost := p.proxy.Injected()[cut]
					loseThrice(t, p, client, s, cut, queue)
					require.Equal(t, lost+3, p.proxy.Injected()[cut], "three were broken")
					names[cut.String()] += 3
				})
			}
		}
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("index steps broken three times in a row: %d steps by %d cuts, 2 ways to repeat; broken %v",
		len(steps), len(wireproxy.Cuts()), names))
}

func loseThrice(t *testing.T, p redisPlace, client *redis.Client, s step, cut wireproxy.Cut, queue string) {
	direct, twin, idx := indexOn(t, p.direct, queue), indexOn(t, p.direct, queue+" twin"), indexOn(t, client, queue)
	require.NoError(t, direct.Add(t.Context(), beforeEach))
	require.NoError(t, twin.Add(t.Context(), beforeEach))
	require.NoError(t, s.do(t.Context(), twin))
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
		assert.Equal(t, 3, failed, "each is seen by the caller")
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

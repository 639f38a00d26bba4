package scenarios

import (
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
	"github.com/dueclaim/dueclaim/redisindex"
)

// idleMeter counts what a scheduler sends, on the wire.
type idleMeter struct{ redis, store *wireproxy.Proxy }

// perSecond lets time pass and returns the commands and queries a second.
func (m idleMeter) perSecond(d time.Duration) (commands, queries float64) {
	c, q := m.redis.Exchanges(), m.store.Exchanges()
	time.Sleep(d)
	return float64(m.redis.Exchanges()-c) / d.Seconds(), float64(m.store.Exchanges()-q) / d.Seconds()
}

// https://github.com/RichardKnop/machinery/issues/140 (and #633, #646): an idle worker
// took half of a processor, in a loop without a brake. Right: at most 5 Redis commands
// and 2 queries a second while idle. With a thousand ids due that nobody here can run it is
// more, by design: all are claimed and given back, a hundred (the slots) at
// a time, once in 2.5 to 5 s, for a process that knows their kind; the bounds
// are what follows from that. What of a processor it takes, internal/acceptance
// measures, on processes of their own.
func TestR59AnIdleWorkerAsksLittle(t *testing.T) {
	onBoth(t, func(t *testing.T, b *fleet.Bench) {
		h, proxy := behind(t, b)
		u, err := url.Parse(b.At.Redis)
		require.NoError(t, err)
		m := idleMeter{redis: wireproxy.New(t, wireproxy.Redis, u.Host), store: proxy}
		client := redis.NewClient(&redis.Options{Addr: m.redis.Addr(), ContextTimeoutEnabled: true, MaxRetries: 1})
		defer client.Close()
		idx, err := redisindex.New(client, redisindex.Options{})
		require.NoError(t, err)
		b.Schedule(t, "far", "job", 1000, func(int) time.Time { return time.Now().Add(time.Hour) })
		j := newJournal()
		w := j.start(t, "w", idx, h.Store, done, core.Options{}) // the defaults
		time.Sleep(2 * time.Second)                              // it reads all rows at its start
		commands, queries := m.perSecond(scale(5*time.Second, 60*time.Second))
		assert.LessOrEqual(t, commands, 5.0, "Redis commands a second, idle")
		assert.LessOrEqual(t, queries, 2.0, "queries a second, idle")

		b.Schedule(t, "strange", "strange", 1000, now)
		released := func() (n int) {
			j.locked(func() {
				for _, times := range j.released {
					n += times
				}
			})
			return n
		}
		fleet.Until(t, 60*time.Second, "the back-off has grown to its bound", func() bool { return released() >= 4000 })
		strangeCommands, strangeQueries := m.perSecond(scale(5*time.Second, 60*time.Second))
		// In 2.5 s at worst thirteen batches: each a take, a claim of up to three statements, a settling of up
		// to two, and the moves in the index; and what an idle worker does.
		assert.LessOrEqual(t, strangeCommands, 5.0+13*3/2.5, "Redis commands a second, nobody knows the kind")
		assert.LessOrEqual(t, strangeQueries, 2.0+13*5/2.5, "queries a second, nobody knows the kind")
		w.stop()
		assert.Zero(t, j.total())
		figure(t, "idle: %.1f Redis commands/s, %.1f queries/s; 1,000 due ids of an unknown kind: %.1f and %.1f", commands, queries, strangeCommands, strangeQueries)
	})
}

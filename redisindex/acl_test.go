package redisindex_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/redisindex"
)

// What docs/operations.md lists for a queue named orders.
var aclRules = []any{
	"reset", "on", ">wrk-s3cret", "resetkeys", "resetchannels", "-@all",
	"~dueclaim:{orders}:due", "~dueclaim:{orders}:junk", "~dueclaim:{orders}:life", "&dueclaim:{orders}:wake",
	"+eval", "+evalsha", "+zadd", "+zrem", "+zscore", "+zmscore", "+zcard", "+zrangebyscore", "+zrange", "+zcount", "+zremrangebyrank",
	"+exists", "+hget", "+hset", "+info", "+publish", "+subscribe", "+unsubscribe", "+ping", "+hello",
}

// setUser makes a user worker of these rules, and returns a client of his.
func setUser(t *testing.T, admin *redis.Client, url string, rules ...any) *redis.Client {
	t.Helper()
	require.NoError(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "worker"}, rules...)...).Err())
	o, err := redis.ParseURL(url)
	require.NoError(t, err)
	o.Username, o.Password = "worker", "wrk-s3cret"
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// denied is an error that says that a right is missing, as Redis 7 says it of a
// command or a key, or of a command in a script, and doesn't show the password.
func denied(t *testing.T, err error, what any) {
	t.Helper()
	require.Error(t, err, "%v", what)
	assert.Regexp(t, "(?i)no permissions|can't run this command|can't access at least one of the keys", err.Error(), "%v", what)
	assert.NotContains(t, err.Error(), "s3cret", "%v", what)
}

// TestAUserWithTheListedCommandsAndKeysRunsAnIndex: on a server of its own, every
// step of the index, junk and wake-ups included, works with what the documentation
// lists, and nothing else is allowed.
func TestAUserWithTheListedCommandsAndKeysRunsAnIndex(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	url := testserver.PrivateRedis(t).URL()
	admin := dial(t, url)
	client := setUser(t, admin, url, aclRules...)
	var got reports
	idx, err := redisindex.New(client, redisindex.Options{Queue: "orders", OnJunk: got.add})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- idx.Watch(ctx, func() { woken <- struct{}{} }) }()
	wake := func() {
		t.Helper()
		select {
		case <-woken:
		case err := <-ended:
			require.NoError(t, err)
			require.Fail(t, "Watch ended")
		case <-time.After(10 * time.Second):
			require.Fail(t, "no wake-up")
		}
	}
	wake() // it stands
	require.NoError(t, idx.Add(ctx, []core.Entry{entry("a", 5), entry("b", 6)}))
	wake()
	require.NoError(t, idx.AddMissing(ctx, []core.Entry{entry("c", 1)}))
	wake()
	require.NoError(t, idx.Move(ctx, []core.Move{{ID: "b", From: at(6), To: at(0)}}))
	wake()
	writeJunk(t, admin, "dueclaim:{orders}:due")
	ids, _, err := idx.Take(ctx, at(10), at(1000), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.ID{"b", "c", "a"}, ids)
	require.NoError(t, idx.Remove(ctx, []core.Entry{entry("a", 1000)}))
	left, err := idx.Due(ctx, at(2000), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{entry("b", 1000), entry("c", 1000)}, left)
	assert.Equal(t, badMembers, got.seen, "junk was set aside")
	left, err = idx.List(ctx, entry("b", 1000), at(2000), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{entry("c", 1000)}, left)
	require.NoError(t, admin.ScriptFlush(ctx).Err())
	_, err = idx.Due(ctx, at(2000), 10)
	require.NoError(t, err, "a script that the server lost is sent again")
	many := make([]core.Entry, 1000)
	for i := range many {
		many[i] = core.Entry{ID: core.ID("many-" + time.Duration(i).String()), Due: at(i)}
	}
	require.NoError(t, idx.Add(ctx, many), "in a pipeline")
	_, _, err = idx.Take(ctx, at(600), at(700), 600)
	require.NoError(t, err, "over several scripts")
	name, err := idx.Generation(ctx)
	require.NoError(t, err)
	require.Regexp(t, "^[^ ]+ [0-9a-f]+$", name, "with the server's start")
	warnings, err := idx.CheckSetup(ctx)
	require.NoError(t, err)
	require.Empty(t, warnings)
	cancel()
	require.NoError(t, <-ended)

	// Nothing else is allowed.
	for _, command := range [][]any{
		{"FLUSHALL"}, {"KEYS", "*"}, {"CONFIG", "GET", "*"}, {"ACL", "LIST"}, {"DEL", "dueclaim:{orders}:due"}, {"GET", "secret"}, {"SCRIPT", "FLUSH"},
		{"ZADD", "dueclaim:{other}:due", "1", "x"}, {"PUBLISH", "dueclaim:{other}:wake", "1"}, {"EVAL", "return redis.call('FLUSHALL')", "0"},
		{"EVAL", "return redis.call('ZADD', KEYS[1], 1, 'x')", "1", "dueclaim:{other}:due"},
	} {
		denied(t, client.Do(t.Context(), command...).Err(), command)
	}
	other, err := redisindex.New(client, redisindex.Options{Queue: "other"})
	require.NoError(t, err)
	denied(t, other.Add(t.Context(), []core.Entry{entry("x", 1)}), "another queue")
}

// TestEachRightIsNeededAndItsLackIsSaid: the list has nothing to spare, and without
// one of them some call says so at once. Without PUBLISH or SUBSCRIBE, only the
// wake-up is lost.
func TestEachRightIsNeededAndItsLackIsSaid(t *testing.T) {
	t.Attr("dueclaim.backend", "index:redis")
	url := testserver.PrivateRedis(t).URL()
	admin := dial(t, url)
	run := func(client *redis.Client) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, admin.FlushAll(ctx).Err())
		idx, err := redisindex.New(client, redisindex.Options{Queue: "orders"})
		require.NoError(t, err)
		if err := idx.Add(ctx, []core.Entry{entry("a", 5), entry("b", 6)}); err != nil {
			return err
		}
		if err := idx.AddMissing(ctx, []core.Entry{entry("c", 1)}); err != nil {
			return err
		}
		if err := idx.Move(ctx, []core.Move{{ID: "a", From: at(5), To: at(0)}}); err != nil {
			return err
		}
		if _, err := idx.Due(ctx, at(10), 10); err != nil {
			return err
		}
		if _, _, err := idx.Take(ctx, at(10), at(20), 10); err != nil {
			return err
		}
		if _, err := idx.Generation(ctx); err != nil {
			return err
		}
		if _, err := idx.List(ctx, entry("a", 20), at(30), 10); err != nil {
			return err
		}
		return idx.Remove(ctx, []core.Entry{entry("a", 20), entry("b", 20), entry("c", 20)})
	}
	require.NoError(t, run(setUser(t, admin, url, aclRules...)))
	for _, right := range []string{"evalsha", "zadd", "zrem", "zmscore", "zrangebyscore", "zrange", "zcount", "exists", "hget", "hset"} {
		err := run(setUser(t, admin, url, append(aclRules, "-"+right)...))
		denied(t, err, "without "+right)
	}
	for _, right := range []string{"zrange", "zcount"} {
		idx, err := redisindex.New(setUser(t, admin, url, append(aclRules, "-"+right)...), redisindex.Options{Queue: "orders"})
		require.NoError(t, err)
		warnings, err := idx.CheckSetup(t.Context())
		require.NoError(t, err)
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "grant +zrange and +zcount")
	}
	for _, right := range []string{"publish", "info"} {
		require.NoError(t, run(setUser(t, admin, url, append(aclRules, "-"+right)...)), "without "+right)
	}
	mute, err := redisindex.New(setUser(t, admin, url, append(aclRules, "-subscribe")...), redisindex.Options{Queue: "orders"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// It once waited for ever, on a connection that stood and was never subscribed.
	err = mute.Watch(ctx, func() {})
	require.NoError(t, ctx.Err(), "Watch hangs")
	denied(t, err, "without subscribe")
}

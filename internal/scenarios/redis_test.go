package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/fleet"
	"github.com/dueclaim/dueclaim/redisindex"
)

// strict refuses what a managed Redis refuses: scripts that it can't follow, keys
// outside of KEYS, and commands that are not on a short list.
type strict struct {
	mu      sync.Mutex
	scripts map[string]bool
	others  map[string]int
	refused []string
}

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	luaCall    = regexp.MustCompile(`redis\.p?call\(`)
	luaLiteral = regexp.MustCompile(`redis\.p?call\('[A-Z]+', *(KEYS\[\d+\]|ARGV\[\d+\])`)
	luaPublish = regexp.MustCompile(`redis\.p?call\('[A-Z]+', *ARGV`)
	luaRedis   = regexp.MustCompile(`\bredis\b`)
)

var strictCommands = []string{"hello", "client", "ping", "evalsha", "eval", "subscribe", "unsubscribe", "zcard", "zrangebyscore", "info"}

func (s *strict) check(cmd redis.Cmder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.ToLower(cmd.Name())
	refuse := func(why string) error {
		s.refused = append(s.refused, why)
		return fmt.Errorf("ERR bad lua script for redis cluster: %s", why)
	}
	if !slices.Contains(strictCommands, name) {
		return refuse("command " + name)
	}
	s.others[name]++
	if name != "eval" && name != "evalsha" {
		return nil
	}
	args := cmd.Args()
	keys, ok := args[2].(int)
	if !ok || keys < 1 {
		return refuse("a script without keys")
	}
	for _, key := range args[3 : 3+keys] {
		if !strings.HasPrefix(fmt.Sprint(key), "dueclaim:{default}:") {
			return refuse(fmt.Sprint("key ", key))
		}
	}
	if name == "evalsha" {
		return nil
	}
	src := luaComment.ReplaceAllString(fmt.Sprint(args[1]), "")
	s.scripts[src] = true
	switch {
	case len(luaCall.FindAllString(src, -1)) != len(luaLiteral.FindAllString(src, -1)):
		return refuse("the first argument of redis.call isn't a literal, or the second not KEYS[n]")
	case len(luaRedis.FindAllString(src, -1)) != len(luaCall.FindAllString(src, -1)):
		return refuse("an alias of redis.call")
	}
	for _, call := range luaPublish.FindAllString(src, -1) {
		if !strings.Contains(call, "'PUBLISH'") {
			return refuse("a key that comes from ARGV: " + call)
		}
	}
	return nil
}

func (s *strict) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *strict) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.check(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (s *strict) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := s.check(cmd); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// https://github.com/HDT3213/delayqueue/issues/12 (cf. asynq#724): a managed cluster
// refused scripts that rename redis.call or compute keys. Right: with a client that
// refuses such scripts, undeclared keys and unusual commands, every method of the
// index and a whole run work. (redisindex holds the same of its files, by text.)
func TestR14AStrictServerAcceptsEveryScript(t *testing.T) {
	t.Parallel()
	b := newBench(t, fleet.MariaDB)
	s := &strict{scripts: map[string]bool{}, others: map[string]int{}}
	b.Redis.AddHook(s)
	// Every method, each with one element and with many.
	ctx := t.Context()
	for _, n := range []int{1, 600} {
		list := fleet.Tasks(fmt.Sprint("m", n), "job", n, func(i int) time.Time { return time.UnixMilli(1000 + int64(i)).UTC() })
		entries, moves := make([]core.Entry, n), make([]core.Move, n)
		for i, task := range list {
			entries[i] = core.Entry{ID: task.ID, Due: task.Due}
			moves[i] = core.Move{ID: task.ID, From: task.Due, To: task.Due.Add(time.Hour)}
		}
		x, ok := b.Index.(*redisindex.Index)
		require.True(t, ok)
		require.NoError(t, x.Add(ctx, entries))
		require.NoError(t, x.AddMissing(ctx, entries))
		_, err := x.Due(ctx, time.UnixMilli(5000), n)
		require.NoError(t, err)
		require.NoError(t, x.Move(ctx, moves))
		_, _, err = x.Take(ctx, time.UnixMilli(5000).Add(time.Hour), time.UnixMilli(5000).Add(2*time.Hour), n)
		require.NoError(t, err)
		for i := range entries {
			entries[i].Due = time.UnixMilli(5000).Add(2 * time.Hour)
		}
		require.NoError(t, x.Remove(ctx, entries))
	}
	require.Zero(t, b.Redis.ZCard(ctx, fleet.DueKey).Val())

	j := newJournal()
	w := j.start(t, "w", b.Index, b.Store, done, options(time.Minute))
	ids := b.Schedule(t, "t", "job", 50, now)
	fleet.Until(t, 20*time.Second, "all are done", func() bool { return j.completed(ids) == 50 })
	w.stop()
	j.wantOnce(t, ids)
	assert.Empty(t, s.refused)
	assert.GreaterOrEqual(t, len(s.scripts), 6, "scripts that were sent and read")
	assert.Empty(t, j.failed)

	// The check itself: it must refuse what those servers refuse.
	for _, bad := range []string{
		"local call = redis.call\nreturn call('ZCARD', KEYS[1])", "return redis.call(ARGV[1], KEYS[1])", "return redis.call('ZCARD', 'k' .. ARGV[1])", "return redis.call('ZCARD', ARGV[1])",
	} {
		require.Error(t, b.Redis.Eval(ctx, bad, []string{fleet.DueKey}, "x").Err(), bad)
	}
}

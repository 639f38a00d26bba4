package redisindex

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name by which Redis knows a script, no secret
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// The scripts, one a step. The rules that they keep, and scripts_test.go holds:
// the first argument of redis.call is a literal, keys come as KEYS[n] alone,
// redis.call has no other name; some managed servers and proxies refuse the rest.
var (
	//go:embed lua/add.lua
	addLua string
	//go:embed lua/addmissing.lua
	addMissingLua string
	//go:embed lua/due.lua
	dueLua string
	//go:embed lua/emptied.lua
	emptiedLua string
	//go:embed lua/generation.lua
	generationLua string
	//go:embed lua/list.lua
	listLua string
	//go:embed lua/move.lua
	moveLua string
	//go:embed lua/remove.lua
	removeLua string
	//go:embed lua/setaside.lua
	setAsideLua string
	//go:embed lua/take.lua
	takeLua string
)

const (
	// scriptItems is how many items one script handles: it blocks the server for
	// about 0.3 ms, and stays far below Lua's limit for unpack (some 8,000).
	scriptItems = 256
	// takeItems is how many ids one take gives: a scheduler's whole batch in one
	// round trip, as what follows would have to be looked up where it takes several.
	takeItems = 512
	// pipelined is how many scripts go out in one round trip.
	pipelined = 8
)

type script struct{ src, sha string }

type scripts struct{ add, addMissing, due, emptied, generation, list, move, remove, setAside, take script }

func newScripts() scripts {
	return scripts{
		add: newScript(addLua), addMissing: newScript(addMissingLua), due: newScript(dueLua),
		emptied: newScript(emptiedLua), generation: newScript(generationLua), list: newScript(listLua), move: newScript(moveLua), remove: newScript(removeLua),
		setAside: newScript(setAsideLua), take: newScript(takeLua),
	}
}

func newScript(src string) script {
	sum := sha1.Sum([]byte(src)) //nolint:gosec // see above
	return script{src: src, sha: hex.EncodeToString(sum[:])}
}

// cmd is a call of the script by its digest, or in full.
func (s script) cmd(ctx context.Context, full bool, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	if full {
		all = append(all, "eval", s.src, len(keys))
	} else {
		all = append(all, "evalsha", s.sha, len(keys))
	}
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// once is a command that the client must not send twice by itself: a repeated
// Take would take more, and leave the first ones at until for nothing.
type once struct{ *redis.Cmd }

// NoRetry tells the client.
func (once) NoRetry() bool { return true }

// run calls the script once. repeatable says whether the client may send it
// again by itself after a lost connection.
func (x *Index) run(ctx context.Context, s script, repeatable bool, keys []string, args []any) (any, error) {
	return within(ctx, func() (any, error) {
		for _, full := range []bool{false, true} {
			cmd := s.cmd(ctx, full, keys, args)
			var err error
			if repeatable {
				err = x.client.Process(ctx, cmd)
			} else {
				err = x.client.Process(ctx, once{cmd})
			}
			// A server that was restarted, flushed or failed over lost the script;
			// nothing was done then.
			if !full && redis.HasErrorPrefix(err, "NOSCRIPT") {
				continue
			}
			return cmd.Val(), err
		}
		panic("unreachable: the full call returned above")
	})
}

// runAll calls the script once for each element of calls, in order, several in
// one round trip. The script must be idempotent. It returns the last one's reply.
func (x *Index) runAll(ctx context.Context, s script, calls [][]any) (last any, err error) {
	keys := []string{x.names.due}
	for len(calls) > 0 {
		some := calls[:min(len(calls), pipelined)]
		calls = calls[len(some):]
		if len(some) == 1 {
			if last, err = x.run(ctx, s, true, keys, some[0]); err != nil {
				return nil, err
			}
			continue
		}
		last, err = within(ctx, func() (any, error) {
			reply, err := x.pipeline(ctx, s, false, keys, some)
			if redis.HasErrorPrefix(err, "NOSCRIPT") {
				reply, err = x.pipeline(ctx, s, true, keys, some)
			}
			return reply, err
		})
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

// pipeline returns the last call's reply. Its error is NOSCRIPT if any call met it,
// else the first error.
func (x *Index) pipeline(ctx context.Context, s script, full bool, keys []string, calls [][]any) (last any, err error) {
	cmds, err := x.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, args := range calls {
			_ = p.Process(ctx, s.cmd(ctx, full, keys, args)) // queues it; the error comes with the reply
		}
		return nil
	})
	for _, cmd := range cmds {
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return nil, cmd.Err()
		}
		if c, ok := cmd.(*redis.Cmd); ok {
			last = c.Val()
		}
	}
	return last, err
}

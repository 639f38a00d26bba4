package redisindex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
)

var _ core.SetupChecker = (*Index)(nil)

// CheckSetup implements [core.SetupChecker]: it warns of a maxmemory-policy that
// may evict the whole sorted set, on each master of a cluster. It asks with INFO
// memory; a server that doesn't say is a warning too, and so is a user who may not list
// entries.
func (x *Index) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := within(ctx, func() (warnings []string, err error) {
		cluster, ok := x.client.(*redis.ClusterClient)
		if !ok {
			return checkMemory(ctx, x.client)
		}
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			some, err := checkMemory(ctx, node)
			mu.Lock()
			defer mu.Unlock()
			warnings = append(warnings, some...)
			return err
		})
		slices.Sort(warnings)
		return slices.Compact(warnings), err
	})
	if err != nil {
		return warnings, x.wrap("check set-up", err)
	}
	switch _, err := x.List(ctx, core.Entry{ID: "-", Due: time.UnixMilli(0)}, time.UnixMilli(1), 1); {
	case isRefusal(err):
		warnings = append(warnings, fmt.Sprintf("Redis doesn't let this user list entries (%v): those of cancelled tasks stay, and tasks whose reply was lost on the way run seconds late; grant +zrange and +zcount", err))
	case err != nil:
		return warnings, err
	}
	return warnings, nil
}

func checkMemory(ctx context.Context, client redis.Cmdable) ([]string, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil && !isRefusal(err) {
		return nil, err
	}
	policy := infoField(info, "maxmemory_policy")
	switch {
	case policy == "": // or INFO was refused
		return []string{"Redis doesn't tell its maxmemory-policy; see to it that it is noeviction"}, nil
	case strings.HasPrefix(policy, "allkeys-"):
		return []string{fmt.Sprintf("Redis has the maxmemory-policy %s: at the maxmemory limit (now %s bytes; 0 is none) it may drop the whole index at once, and tasks run late until it is filled again; set noeviction",
			policy, infoField(info, "maxmemory"))}, nil
	}
	return nil, nil
}

// isRefusal tells whether err says that the server hasn't this command, or not for
// this user; a server that loads its data, or knows no such password, says nothing of
// the command.
func isRefusal(err error) bool {
	for _, other := range []string{"NOAUTH", "WRONGPASS", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"} {
		if redis.HasErrorPrefix(err, other) {
			return false
		}
	}
	var refusal redis.Error
	return errors.As(err, &refusal)
}

// infoField returns the value of a line "name:value" of INFO, or "".
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

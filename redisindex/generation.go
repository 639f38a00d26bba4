package redisindex

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
)

var _ core.Detector = (*Index)(nil)

// Generation implements [core.Detector]. Its name changes when the sorted set is
// gone (a flush, an eviction, a deletion; also when it simply became empty, which
// costs a reading of a store that has nothing waiting), and when another server, or
// another start of it, answers: a restart, perhaps with an old snapshot, or the
// promotion of a replica, which may lack the last writes. The latter it knows by
// the run_id of INFO server; where INFO is refused it goes without.
//
// It is two commands, in two round trips.
func (x *Index) Generation(ctx context.Context) (string, error) {
	keys := []string{x.names.due, x.names.life}
	reply, err := x.run(ctx, x.scripts.generation, true, keys, []any{rand.Text()})
	if err != nil {
		return "", x.wrap("generation", err)
	}
	life, ok := reply.(string)
	if !ok {
		return "", x.wrap("generation", errReply)
	}
	run, err := within(ctx, func() (string, error) { return x.runID(ctx) })
	if err != nil {
		return "", x.wrap("generation", err)
	}
	return life + " " + run, nil
}

// runID names the start of the server that has the sorted set, "" where it doesn't
// say.
func (x *Index) runID(ctx context.Context) (string, error) {
	server := redis.Cmdable(x.client)
	if cluster, ok := x.client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, x.names.due)
		if err != nil {
			return "", err
		}
		server = master
	}
	info, err := server.Info(ctx, "server").Result()
	if isRefusal(err) {
		return "", nil
	}
	return infoField(info, "run_id"), err
}

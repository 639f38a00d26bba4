package redisindex

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
)

var _ core.Detector = (*Index)(nil)

// Generation implements [core.Detector]. Its name changes when the sorted set is
// gone (a flush, an eviction, a deletion; not where Remove took the last entry), and
// when another server, or another start of it, answers: a restart, perhaps with an old
// snapshot, or the promotion of a replica, which may lack the last writes. The latter
// it knows by the run_id of INFO server; where INFO is refused it goes without.
//
// A set that is evicted alone, and begun anew by an Add before the next call of
// Generation, keeps its name: what it lost is found as the tasks come due.
//
// It is two commands, in two round trips.
func (x *Index) Generation(ctx context.Context) (string, error) {
	reply, err := x.run(ctx, x.scripts.generation, true, x.lifeKeys(), []any{rand.Text()})
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
// say. A client of several servers would send an INFO without more to any of them.
func (x *Index) runID(ctx context.Context) (string, error) {
	var server redis.Cmdable = x.client
	var err error
	switch client := x.client.(type) {
	case *redis.ClusterClient:
		server, err = client.MasterForKey(ctx, x.names.due)
	case *redis.Ring:
		server, err = client.GetShardClientForKey(x.names.due)
	}
	if err != nil {
		return "", err
	}
	info, err := server.Info(ctx, "server").Result()
	if isRefusal(err) {
		return "", nil
	}
	return infoField(info, "run_id"), err
}

func (x *Index) lifeKeys() []string { return []string{x.names.due, x.names.life} }

// noteEmptied says that the set is gone because its last entry was removed. That it
// isn't said, after an error, costs a reading of a store that has nothing waiting. It
// is a call of its own as Remove's scripts have one key: while a slot of a cluster
// moves, one with two could not be run.
func (x *Index) noteEmptied(ctx context.Context) {
	_, _ = x.run(ctx, x.scripts.emptied, true, x.lifeKeys(), nil)
}

// Package redisindex is a [core.TimeIndex] on Redis 6.2 or later, or Valkey:
// one sorted set a queue, shared by any number of processes. It takes any
// redis.UniversalClient: a single server, Sentinel or Cluster.
//
// # What stands in Redis
//
//	dueclaim:{<queue>}:due   sorted set: member = id, score = due time in
//	                         milliseconds since 1970
//	dueclaim:{<queue>}:junk  sorted set: what was set aside (below), at most 1,000
//	dueclaim:{<queue>}:life  hash: a name for this life of the sorted set
//	dueclaim:{<queue>}:wake  channel: a new earliest due time was published
//
// The queue's name is escaped so that the hash tag holds and two queues never
// share a key; all keys of a queue are in one slot. Nothing there is needed for
// correctness: after a FLUSHALL, an eviction or a failover that lost writes the
// scheduler's sweeps fill the index again from the claim store.
//
// An entry takes about 105 bytes beside its id (Redis 7.0, a million entries with
// ids of 20 bytes: 126 MB; of 36 bytes: 142 MB; of 64 bytes: 174 MB). A sorted set lives in one shard and is deleted,
// migrated and dumped as a whole: keep it to about a million entries with the
// scheduler's Horizon, or spread a queue over several indexes.
//
// Give the server maxmemory-policy noeviction: an allkeys- one can drop the whole
// set at once. CheckSetup, which a scheduler calls when it starts, warns of that.
//
// # What someone else wrote there
//
// Members that are no valid ids, and scores that no due time can have (negative,
// infinite, after the year 9999: seconds or milliseconds are fine, microseconds
// are not), are never returned and never stand before entries. They are moved to
// the junk set when a call comes across them, and reported to Options.OnJunk. A
// task whose own entry was set aside is added again by the next sweep. A fraction
// of a millisecond counts as rounded up.
//
// # The client
//
// The client is the caller's; redisindex never closes it. Recommended:
//
//	redis.NewClient(&redis.Options{
//		Addr:                  "127.0.0.1:6379",
//		ContextTimeoutEnabled: true,            // a call's deadline also ends its I/O
//		ReadTimeout:           time.Second,     // and so does this when it is cancelled
//		MaxRetries:            1,
//		DialerRetries:         1,               // five, the default, are half a second of a dead server
//	})
//
// go-redis by itself looks at a cancelled context between two attempts only, and
// at its deadline only with ContextTimeoutEnabled; a server that is stopped or
// cut off would hold up a call for ReadTimeout times the attempts. So each call
// here returns when its ctx is done, whatever the options; what the client still
// does for it goes on in the background until the client's own time-outs end it,
// and its effect is then unknown, as with any lost reply.
//
// A cluster's client asks once a minute which servers are the masters
// (ClusterStateReloadInterval). Here it is made to ask again when a call gets no answer,
// or it would go on with a dead master until then.
//
// One connection a scheduler for its calls and one more for Watch are enough;
// calls never block in Redis. Old proxies may need Protocol: 2 and
// MaintNotificationsConfig with Mode: maintnotifications.ModeDisabled.
//
// With ACLs (docs/operations.md has the whole line) the user needs the queue's three
// keys and its channel, and the commands EVAL, EVALSHA, ZADD, ZREM, ZCARD, ZSCORE,
// ZMSCORE, ZRANGEBYSCORE, ZRANGE, ZCOUNT, ZREMRANGEBYRANK, EXISTS, HGET, HSET, PUBLISH, SUBSCRIBE,
// UNSUBSCRIBE, PING, HELLO;
// with INFO it also notices restarts and promotions at once and checks the
// maxmemory-policy.
package redisindex

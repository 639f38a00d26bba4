package redisindex

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.TimeIndex = (*Index)(nil)
	_ core.Taker     = (*Index)(nil)
	_ core.Watcher   = (*Index)(nil)
	_ core.Restorer  = (*Index)(nil)
)

// Options of an Index. The zero value is usable.
type Options struct {
	// Queue separates the entries of several queues on one server: 1 to 100
	// bytes of valid UTF-8 without control characters or spaces at its ends. The
	// default is "default".
	Queue string
	// OnJunk, if set, is told of each member that was set aside because it is no
	// valid id or because no due time has such a score (which may be infinite).
	// It is called in the goroutine of the call that came across it, from several
	// at once perhaps, and must not block: that call waits. Of many processes, one
	// reports it. A panic costs that report; the first is told on the standard error.
	OnJunk func(member string, score float64)
}

// Index is a time index on a Redis sorted set. It is safe for concurrent use.
type Index struct {
	client    redis.UniversalClient
	onJunk    func(member string, score float64)
	junkPanic sync.Once
	names     names
	scripts   scripts
	takes     atomic.Uint32 // calls of Take, to look for wrong scores in some
	// silence is how long Watch waits for a message before it asks whether the
	// server is still there.
	silence time.Duration
}

// New returns an index on client, which stays the caller's and must outlive it.
// It sends nothing. Its error is core.ErrInvalid.
func New(client redis.UniversalClient, o Options) (*Index, error) {
	if client == nil {
		return nil, fmt.Errorf("redisindex: new: %w: the client is nil", core.ErrInvalid)
	}
	names, err := newNames(o.Queue)
	if err != nil {
		return nil, fmt.Errorf("redisindex: new: %w", err)
	}
	return &Index{
		client: client, onJunk: o.OnJunk, names: names, scripts: newScripts(), silence: 5 * time.Second,
	}, nil
}

// wrap names the call and, for a key that holds something else, the key.
func (x *Index) wrap(call string, err error) error {
	var refusal redis.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal):
		x.lookForMasters(err)
	case strings.Contains(refusal.Error(), "WRONGTYPE"): // Redis 6 says first which script
		return fmt.Errorf("redisindex: %s: key %q is not a sorted set; delete it or use another queue: %w", call, x.names.due, err)
	}
	return fmt.Errorf("redisindex: %s: %w", call, err)
}

// lookForMasters has a client of a cluster, which has got no answer, ask who the masters
// are now. By itself it asks each ClusterStateReloadInterval, by default a minute, and
// where a server says that it isn't the one; a dead master says nothing.
func (x *Index) lookForMasters(err error) {
	if cluster, ok := x.client.(*redis.ClusterClient); ok && !errors.Is(err, context.Canceled) {
		cluster.ReloadState(context.Background()) // it returns at once, and puts up with being asked often
	}
}

// within runs f and returns what it returns, or ctx's error as soon as ctx is
// done; f then goes on alone. go-redis can't be woken from a read that waits for
// a stopped server (see the package comment), and a scheduler can't wait for it.
// f must not touch what belongs to the caller.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	type outcome struct {
		value T
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := f()
		ended <- outcome{value, err}
	}()
	select {
	case o := <-ended:
		return o.value, withCause(ctx, o.err)
	case <-ctx.Done():
	}
	select { // both at once: a result is worth more
	case o := <-ended:
		return o.value, withCause(ctx, o.err)
	default:
		return zero, ctx.Err()
	}
}

// withCause adds ctx's error to one that came of it, such as the time-out of a
// read whose deadline was ctx's.
func withCause(ctx context.Context, err error) error {
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

package redisindex

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Watch implements [core.Watcher] on a connection of its own. It calls notify in
// the caller's goroutine: for each new earliest due time that was published, and
// once whenever the subscription stands, at first and after the client's own
// reconnect, since messages may have been missed meanwhile. A server that is
// silent for 5 s is asked for a sign of life; 5 s more without one, or two
// failures in a row, and Watch returns an error.
//
// It returns nil soon after ctx is done; while the client is connecting, after
// its dial and read time-outs at the latest.
func (x *Index) Watch(ctx context.Context, notify func()) error {
	if ctx.Err() != nil {
		return nil
	}
	sub := x.client.Subscribe(ctx, x.names.wake) // an error comes again with the first Receive
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = sub.Close() // the only way to end a read that waits
	})
	err := x.listen(ctx, sub, notify)
	if stop() {
		_ = sub.Close()
	} else {
		<-closed
	}
	if ctx.Err() != nil {
		return nil
	}
	return x.wrap("watch", err)
}

// errSilent is a server that doesn't answer while its connection stands.
var errSilent = errors.New("the server doesn't answer a PING")

func (x *Index) listen(ctx context.Context, sub *redis.PubSub, notify func()) error {
	failed, asked := false, false
	for ctx.Err() == nil {
		message, err := sub.ReceiveTimeout(ctx, x.silence)
		var timeout net.Error
		var refusal redis.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refusal):
			// The server doesn't let this user subscribe, or not now. The connection
			// stands, so a second try would wait for messages that never come.
			return err
		case errors.As(err, &timeout) && timeout.Timeout():
			if asked {
				return errSilent
			}
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			asked = true
			continue
		case err != nil:
			// The client has connected again already, if it could: one more try.
			if failed {
				return err
			}
			failed, asked = true, false
			continue
		}
		failed, asked = false, false
		switch message.(type) {
		case *redis.Subscription, *redis.Message:
			notify()
		}
	}
	return nil
}

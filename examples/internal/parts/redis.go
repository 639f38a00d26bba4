package parts

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/redisindex"
)

// openIndex makes a heap of this process's own, or opens the Redis that all
// processes share.
func (p *Parts) openIndex(ctx context.Context) error {
	if p.choice.Index == "heap" {
		p.Index = heapindex.New()
		return nil
	}
	options, err := redis.ParseURL(p.choice.Index)
	if err != nil {
		return errors.New("index redis://…: the driver doesn't know its options")
	}
	options.ContextTimeoutEnabled = true
	options.ReadTimeout = time.Second
	options.MaxRetries = 1
	client := redis.NewClient(options)
	p.close = append(p.close, client.Close)
	if err := client.Ping(ctx).Err(); err != nil {
		return noAnswer("redis", options.Addr, err)
	}
	p.Index, err = redisindex.New(client, redisindex.Options{Queue: p.choice.Queue})
	return err
}

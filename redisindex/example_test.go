package redisindex_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/redisindex"
)

func ExampleNew() {
	server, err := miniredis.Run() // a stand-in for your own server
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer func() { _ = client.Close() }()
	idx, err := redisindex.New(client, redisindex.Options{
		Queue:  "orders",
		OnJunk: func(member string, score float64) { log.Printf("set aside: %q at %g", member, score) },
	})
	if err != nil {
		log.Fatal(err)
	}
	// A scheduler makes these calls: core.New(idx, store, handler, core.Options{}).
	ctx, due := context.Background(), time.UnixMilli(1_900_000_000_000)
	if err := idx.Add(ctx, []core.Entry{{ID: "order-1", Due: due}}); err != nil {
		log.Fatal(err)
	}
	ids, _, err := idx.Take(ctx, due, due.Add(30*time.Second), 100)
	fmt.Println(ids, err)
	// Output: [order-1] <nil>
}

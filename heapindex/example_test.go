package heapindex_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

func ExampleNew() {
	idx := heapindex.New()
	// A scheduler makes these calls: core.New(idx, store, handler, core.Options{}).
	ctx, due := context.Background(), time.UnixMilli(1_900_000_000_000).UTC()
	_ = idx.Add(ctx, []core.Entry{{ID: "order-1", Due: due}, {ID: "order-2", Due: due.Add(time.Second)}})
	ids, next, err := idx.Take(ctx, due, due.Add(30*time.Second), 100)
	fmt.Println(ids, next.Sub(due), err)
	// Output: [order-1] 1s <nil>
}

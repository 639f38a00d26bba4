package redisindex_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestConformanceOnValkey(t *testing.T) {
	t.Attr("dueclaim.backend", "index:valkey")
	open := func(t *testing.T) redis.UniversalClient { return dial(t, testserver.Valkey(t)) }
	conform(t, open, open)
}

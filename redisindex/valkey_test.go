package redisindex_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

func TestConformanceOnValkey(t *testing.T) {
	t.Attr("dueclaim.backend", "index:valkey")
	open := func(t *testing.T, l *line.Line) redis.UniversalClient { return dialBy(t, testserver.Valkey(t), l) }
	conform(t, open, open)
}

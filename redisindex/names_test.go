package redisindex

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// hashTag is what Redis Cluster hashes of a key: what stands between the first {
// and the next } if that is not empty, else all of it.
func hashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	end := strings.IndexByte(key[open+1:], '}')
	if end <= 0 {
		return key
	}
	return key[open+1 : open+1+end]
}

func TestKeysOfAQueueShareASlotAndNoTwoQueuesShareAKey(t *testing.T) {
	seen := map[string]string{}
	for _, queue := range []string{
		"", "a", "A", "{a}", "a}", "}a{", "{}", "{", "}", "%7B", "%7Ba%7D", "a:due", "a b", "a%20b",
		"订单", "a*", "a?[b]", `a\b`, "dueclaim:{a}:due", strings.Repeat("q", 100),
	} {
		n, err := newNames(queue)
		require.NoError(t, err, "%q", queue)
		tag := hashTag(n.due)
		assert.NotEmpty(t, tag)
		assert.NotEqual(t, n.due, tag, "%q: the tag holds", queue)
		assert.Equal(t, tag, hashTag(n.junk))
		assert.Equal(t, tag, hashTag(n.wake))
		for _, name := range []string{n.due, n.junk, n.wake} {
			other, taken := seen[name]
			assert.False(t, taken, "queues %q and %q share %q", queue, other, name)
			seen[name] = queue
		}
	}
	n, err := newNames("orders")
	require.NoError(t, err)
	assert.Equal(t, names{due: "dueclaim:{orders}:due", junk: "dueclaim:{orders}:junk", life: "dueclaim:{orders}:life", wake: "dueclaim:{orders}:wake"}, n)
}

func TestBadQueueNamesAreRefused(t *testing.T) {
	for _, queue := range []string{strings.Repeat("q", 101), "a\x00b", "a\nb", " a", "a ", "\xff"} {
		_, err := newNames(queue)
		require.ErrorIs(t, err, core.ErrInvalid, "%q", queue)
	}
	_, err := New(nil, Options{})
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorContains(t, err, "client is nil")
}

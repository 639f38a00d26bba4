package claim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/claim"
)

func TestChunksAreBoundedByCountAndBytes(t *testing.T) {
	size := func(s string) int { return len(s) }
	for name, c := range map[string]struct {
		items        string
		count, bytes int
		size         func(string) int
		want         []string
	}{
		"none":                        {"", 3, 10, size, nil},
		"count":                       {"a b c d e f g", 3, 100, size, []string{"a b c", "d e f", "g"}},
		"count, exactly":              {"a b c d", 2, 100, size, []string{"a b", "c d"}},
		"bytes":                       {"aaa bbb cc dddd", 9, 6, size, []string{"aaa bbb", "cc dddd"}},
		"an item larger than allowed": {"a bbbbbbbbb c", 9, 4, size, []string{"a", "bbbbbbbbb", "c"}},
		"no size":                     {"aaaaaaaa bbbbbbbbb", 9, 0, nil, []string{"aaaaaaaa bbbbbbbbb"}},
		"one an item":                 {"a b", 1, 100, nil, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			items := strings.Fields(c.items)
			var got []string
			at := 0
			for start, chunk := range claim.Chunks(items, c.count, c.bytes, c.size) {
				assert.Equal(t, at, start, "index of the first item")
				at += len(chunk)
				got = append(got, strings.Join(chunk, " "))
			}
			assert.Equal(t, c.want, got)
		})
	}
	for range claim.Chunks([]int{1, 2, 3}, 1, 0, nil) {
		break // may stop early
	}
}

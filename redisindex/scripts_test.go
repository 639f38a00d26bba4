package redisindex

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	comment  = regexp.MustCompile(`--[^\n]*`)
	anyCall  = regexp.MustCompile(`redis\.p?call`)
	goodCall = regexp.MustCompile(`redis\.p?call\('[A-Z]+', (KEYS\[[12]\]|ARGV\[1\])[,)]`)
	anyKeys  = regexp.MustCompile(`\bKEYS\b`)
	goodKeys = regexp.MustCompile(`redis\.p?call\('[A-Z]+', KEYS\[[12]\][,)]`)
)

// Some managed servers, proxies and Redis-compatible databases read scripts
// before they run them, and refuse what they can't follow. See
// https://github.com/HDT3213/delayqueue/issues/12: the command's name must be a
// literal, keys must come as KEYS[n] itself, and redis.call must not be renamed.
func TestScriptsAreReadableByStrictServers(t *testing.T) {
	for name, src := range luaFiles(t) {
		t.Run(name, func(t *testing.T) {
			code := comment.ReplaceAllString(src, "")
			assert.Equal(t, len(anyCall.FindAllString(code, -1)), len(goodCall.FindAllString(code, -1)),
				"each redis.call has a literal command first, then a key as KEYS[n] (PUBLISH: the channel)")
			assert.Equal(t, len(anyKeys.FindAllString(code, -1)), len(goodKeys.FindAllString(code, -1)),
				"KEYS[n] stands only as the key of a redis.call")
			for _, publish := range regexp.MustCompile(`redis\.p?call\('[A-Z]+', ARGV`).FindAllString(code, -1) {
				assert.Contains(t, publish, "'PUBLISH'", "no key comes from ARGV")
			}
			assert.Len(t, regexp.MustCompile(`\bredis\b`).FindAllString(code, -1), len(anyCall.FindAllString(code, -1)),
				"redis is used for redis.call alone, never renamed")
			assert.NotRegexp(t, `redis\.p?call\s*[^(\s]`, code, "redis.call is called at once, never renamed")
			assert.NotRegexp(t, `#!|\bcjson\b|\bcmsgpack\b|\bstruct\b|\bbit\b`, code, "nothing that some servers lack")
			assert.NotRegexp(t, `'TIME'|math\.random`, code, "an index reads no clock and draws no lots")
		})
	}
}

// A script is atomic, not transactional: what it wrote before an error stays.
// So all that can fail on a key of the wrong type comes before the first write,
// and no early return after one.
func TestScriptsReadBeforeTheyWrite(t *testing.T) {
	write := regexp.MustCompile(`'(ZADD|ZREM|ZREMRANGEBYRANK|HSET)'`)
	for name, src := range luaFiles(t) {
		code := comment.ReplaceAllString(src, "")
		first := write.FindStringIndex(code)
		if first == nil || name == "add.lua" || name == "setaside.lua" {
			continue // add.lua reads the head; setaside.lua goes member by member, and checks both keys first
		}
		assert.NotRegexp(t, `'(Z(SCORE|MSCORE|RANGEBYSCORE|CARD)|EXISTS|HGET)'`, code[first[1]:], "%s reads after a write", name)
	}
}

func TestEachScriptIsEmbedded(t *testing.T) {
	s := newScripts()
	embedded := map[string]string{
		"add.lua": s.add.src, "addmissing.lua": s.addMissing.src, "due.lua": s.due.src, "emptied.lua": s.emptied.src,
		"generation.lua": s.generation.src, "list.lua": s.list.src, "move.lua": s.move.src, "remove.lua": s.remove.src, "setaside.lua": s.setAside.src, "take.lua": s.take.src,
	}
	assert.Equal(t, luaFiles(t), embedded)
	for name, src := range embedded {
		for _, bound := range regexp.MustCompile(`\d{12,}`).FindAllString(src, -1) {
			assert.Equal(t, lastScore, bound, "%s: the end of the year 9999", name)
		}
	}
}

func luaFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("lua/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	files := map[string]string{}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		require.False(t, strings.Contains(string(src), "\r"))
		files[filepath.Base(path)] = string(src)
	}
	return files
}

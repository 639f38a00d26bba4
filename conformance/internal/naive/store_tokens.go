package naive

import (
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// tokens are what rows begin with: above all tokens that there were, of whatever id, and
// as large as those of a clock.
type tokens struct {
	mu   sync.Mutex
	last int64
}

func (t *tokens) next() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, time.Now().UnixMicro())
	return t.last
}

func (t *tokens) saw(token int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, token)
}

// firstToken is what a new row begins with.
func (s *Store) firstToken(call core.Call) int64 {
	switch {
	case s.is("first token from Call.Now"):
		return call.Now.UnixMilli()
	case s.is("first token from a clock of milliseconds"):
		return time.Now().UnixMilli()
	}
	return s.tokens.next()
}

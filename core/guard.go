package core

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// guard keeps a panic in a func that the user handed in (a hook, a back-off, the
// logger's own handler) from ending the process: it costs that one call.
type guard struct {
	log *slog.Logger

	mu     sync.Mutex
	panics map[string]*panics
}

// panics are those of one func.
type panics struct {
	n    int
	told time.Time
}

func newGuard(log *slog.Logger) *guard { return &guard{log: log, panics: make(map[string]*panics)} }

// catch is to be deferred around the call of the func with this name.
func (g *guard) catch(name string) {
	v := recover()
	if v == nil {
		return
	}
	if n := g.count(name); n > 0 {
		g.log.Error("dueclaim: a func of the program's panicked; that call of it is left out",
			"func", name, "panic", fmt.Sprint(v), "times", n, "stack", string(debug.Stack()))
	}
}

// count counts a panic and returns how many there were, or 0 where another line of the
// log would come within a minute.
func (g *guard) count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.panics[name]
	if p == nil {
		p = &panics{}
		g.panics[name] = p
	}
	p.n++
	if !p.told.IsZero() && time.Since(p.told) < time.Minute {
		return 0
	}
	p.told = time.Now()
	return p.n
}

// guardedLogger returns log with a handler whose panics cost a line each. They are told
// on last, since the log can't tell of them; once.
func guardedLogger(log *slog.Logger, last io.Writer) *slog.Logger {
	if _, already := log.Handler().(*guardedHandler); already {
		return log
	}
	return slog.New(&guardedHandler{inner: log.Handler(), last: last, once: &sync.Once{}})
}

var lastResort io.Writer = os.Stderr

type guardedHandler struct {
	inner slog.Handler
	last  io.Writer
	once  *sync.Once
}

func (h *guardedHandler) catch() {
	v := recover()
	if v == nil {
		return
	}
	h.once.Do(func() {
		_, _ = fmt.Fprintf(h.last, "dueclaim: the logger's handler panicked; lines of the log are lost: %v\n%s\n", v, debug.Stack())
	})
}

func (h *guardedHandler) Enabled(ctx context.Context, level slog.Level) (yes bool) {
	defer h.catch()
	return h.inner.Enabled(ctx, level)
}

func (h *guardedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	defer h.catch()
	return h.inner.Handle(ctx, r)
}

// WithAttrs and WithGroup are called by With and WithGroup of a Logger alone, neither of
// which this package calls.
func (h *guardedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &guardedHandler{inner: h.inner.WithAttrs(attrs), last: h.last, once: h.once}
}

func (h *guardedHandler) WithGroup(name string) slog.Handler {
	return &guardedHandler{inner: h.inner.WithGroup(name), last: h.last, once: h.once}
}

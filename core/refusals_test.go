package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// logBook is a logger's lines.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// with returns the lines that have the text.
func (b *logBook) with(text string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for line := range strings.Lines(b.buf.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestRefusalsWithAReasonAreLoggedFromTheFirstOnAndSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, idx, book := &stepStore{}, heapindex.New(), &logBook{}
		var mu sync.Mutex
		told := map[core.ID]int{}
		opt := core.Options{Logger: book.logger(), Observer: core.Observer{Refused: func(id core.ID, err error) {
			mu.Lock()
			defer mu.Unlock()
			assert.ErrorContains(t, err, "leading zero")
			told[id]++
		}}}
		s, err := core.New(idx, store, &recorder{}, opt)
		require.NoError(t, err)
		stop := running(t, s)
		now := core.CeilMilli(time.Now())
		require.NoError(t, idx.Add(t.Context(), []core.Entry{{ID: "007", Due: now}}))
		time.Sleep(100 * time.Millisecond)
		lines := book.with("id=007")
		require.Len(t, lines, 1, "the first refusal")
		assert.Contains(t, lines[0], `reason="id \"007\" has a leading zero"`)
		assert.NotContains(t, lines[0], "locked", "no guess beside a reason")
		for range 6000 { // somebody brings it up all the time
			require.NoError(t, idx.Add(t.Context(), []core.Entry{{ID: "007", Due: now}}))
			time.Sleep(100 * time.Millisecond)
		}
		n := len(book.with("id=007"))
		assert.Greater(t, n, 5)
		assert.Less(t, n, 50, "lines in ten minutes: not more often than the id's back-off, soon a minute")
		mu.Lock()
		assert.Greater(t, told["007"], 1000, "each refusal is observed")
		mu.Unlock()
		require.NoError(t, stop())
	})
}

func TestRefusalsWithoutAReasonAreLoggedFromTheThirdOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, book := newParts(t), &logBook{}
		var mu sync.Mutex
		refused := 0
		opt := core.Options{Logger: book.logger(), Observer: core.Observer{Refused: func(_ core.ID, err error) {
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			refused++
		}}}
		s, err := core.New(p.idx, &refuser{hookedStore{Store: p.store}}, &recorder{}, opt)
		require.NoError(t, err)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "locked", Due: time.Now()}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, <-done)
		lines := book.with("id=locked")
		assert.Len(t, lines, refused-2)
		assert.Contains(t, lines[0], "locked, a trigger, row security?")
	})
}

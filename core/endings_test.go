package core_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func TestGoexitInAHandlerIsAFailureAndFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		r := &recorder{}
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			if job.Task.ID == "exits" {
				runtime.Goexit()
			}
			return r.Handle(ctx, job)
		})
		stop := running(t, p.scheduler(t, h, core.Options{Slots: 1}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "exits", Due: time.Now(), MaxAttempts: 1}))
		time.Sleep(time.Second)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "next", Due: time.Now()}))
		time.Sleep(time.Second)
		row, _ := p.store.Task("exits")
		assert.Equal(t, claim.DeadState, row.Status)
		assert.Contains(t, row.LastError, "Goexit")
		assert.Equal(t, 1, r.get("next"), "the slot is free again")
		require.NoError(t, stop())
	})
}

// nilErr is an error whose method panics on a nil pointer.
type nilErr struct{ s string }

func (e *nilErr) Error() string { return e.s }

func TestNilPointerAsAnErrorIsAFailureNotTheEndOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		h := core.HandlerFunc(func(context.Context, *core.Job) error {
			var err *nilErr
			return err
		})
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now(), MaxAttempts: 1}))
		_, err := p.scheduler(t, h, core.Options{}).Tick(t.Context(), time.Now().Add(time.Second))
		require.NoError(t, err)
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.DeadState, row.Status)
		assert.Contains(t, row.LastError, "panic")
	})
}

// Most code returns ctx.Err(), not the cause: a deploy must not send it to the dead.
func TestContextsOwnErrorAtAShutdownGivesTheTaskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		h := core.HandlerFunc(func(ctx context.Context, _ *core.Job) error {
			<-ctx.Done()
			return fmt.Errorf("half done: %w", ctx.Err())
		})
		stop := running(t, p.scheduler(t, h, core.Options{Drain: time.Second}))
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now(), MaxAttempts: 1}))
		time.Sleep(time.Second)
		require.NoError(t, stop())
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.Pending, row.Status)
		assert.Equal(t, 0, row.Attempts)
	})
}

// once is an error that can tell its text once.
type once struct{ told int }

func (e *once) Error() string {
	if e.told++; e.told > 1 {
		panic("I said it before")
	}
	return "paper jam"
}

func TestAnErrorsOwnMethodsAreCalledWhereTheirPanicIsCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now(), MaxAttempts: 1}))
		h := core.HandlerFunc(func(context.Context, *core.Job) error { return &once{} })
		_, err := p.scheduler(t, h, core.Options{}).Tick(t.Context(), time.Now().Add(time.Second))
		require.NoError(t, err)
		row, _ := p.store.Task("x")
		assert.Equal(t, claim.DeadState, row.Status)
		assert.Equal(t, "paper jam", row.LastError)
	})
}

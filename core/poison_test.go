package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// In company and alone, a task that the store can't take fails its own caller in the
// same way, and nobody else.
func TestOnePoisonedCallFailsNoOtherOfItsStatement(t *testing.T) {
	tooLong := errors.New("value too long for type character varying(10)")
	for name, c := range map[string]struct {
		poison func(ctx context.Context) error
		check  func(t *testing.T, err error)
		others time.Duration // how long they may take
	}{
		"an answer that names no item": {
			func(context.Context) error { return fmt.Errorf("%w: not in this store", core.ErrInvalid) },
			func(t *testing.T, err error) {
				require.ErrorIs(t, err, core.ErrInvalid)
				var unknown *core.OutcomeError
				require.NotErrorAs(t, err, &unknown)
			}, 0,
		},
		"no answer": {
			func(context.Context) error { return tooLong },
			func(t *testing.T, err error) {
				require.ErrorIs(t, err, tooLong)
				var unknown *core.OutcomeError
				require.ErrorAs(t, err, &unknown)
			}, 10 * time.Millisecond,
		},
		"a row that stays locked": {
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			func(t *testing.T, err error) { require.ErrorIs(t, err, context.DeadlineExceeded) }, time.Second,
		},
		"an item that names itself": {
			func(context.Context) error {
				return core.NewBatchError([]core.ItemError{{Index: 0, ID: "poison", Err: tooLong}})
			},
			func(t *testing.T, err error) { require.ErrorIs(t, err, tooLong) }, 10 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStation(t, core.ProducerOptions{})
				s.on = func(ctx context.Context, st statement, insert func() error) error {
					if st.has("poison") {
						return c.poison(ctx)
					}
					return insert()
				}
				s.crowd()
				poison := s.call(t.Context(), due("poison"))
				var others []<-chan error
				for i := range 20 {
					others = append(others, s.call(t.Context(), due(fmt.Sprint(i))))
				}
				start := time.Now()
				s.open()
				for i, answer := range others {
					require.NoError(t, <-answer)
					assert.True(t, s.stored(core.ID(fmt.Sprint(i))))
				}
				assert.LessOrEqual(t, time.Since(start), c.others)
				c.check(t, <-poison)
			})
		})
	}
}

// panics runs f and returns what it panics with.
func panics(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

func TestAPanicOfTheStoreIsItsOwnCallersPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		s := newStation(t, core.ProducerOptions{Logger: book.logger()})
		s.on = func(_ context.Context, st statement, insert func() error) error {
			if st.has("poison") {
				panic("a bug in the driver")
			}
			return insert()
		}
		s.crowd()
		poison := make(chan any, 1)
		go func() { poison <- panics(func() { _ = s.prod.Schedule(t.Context(), due("poison")) }) }()
		other := s.call(t.Context(), due("other"))
		s.open()
		require.NoError(t, <-other)
		assert.True(t, s.stored("other"))
		assert.Equal(t, "a bug in the driver", <-poison)
		assert.Len(t, book.with("a bug in the driver"), 1)
		for range 3 { // by itself: as ever, and nothing stays in flight
			assert.NotNil(t, panics(func() { _ = s.prod.Schedule(t.Context(), due("poison")) }))
		}
		require.NoError(t, s.prod.Schedule(t.Context(), due("after")))
	})
}

func TestAPanicOfTheIndexIsEachCallersPanicAndTheTasksAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, core.ProducerOptions{})
		s.crowd()
		var all []chan any
		for _, id := range []string{"a", "b"} {
			c := make(chan any, 1)
			all = append(all, c)
			go func() { c <- panics(func() { _ = s.prod.Schedule(t.Context(), due(id)) }) }()
		}
		synctest.Wait()
		s.idx.on = func() { panic("a bug in the index") }
		s.open()
		for _, c := range all {
			assert.Equal(t, "a bug in the index", <-c)
		}
		assert.True(t, s.stored("a"))
		assert.True(t, s.stored("b"))
		assert.Len(t, s.statements(), 1)
	})
}

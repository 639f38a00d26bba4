package unknowns

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// answered tells an answer from an unknown outcome, as core does.
func answered(err error) bool {
	if err == nil {
		return true
	}
	var batch *core.BatchError
	if !errors.As(err, &batch) {
		return false
	}
	for _, item := range batch.Items {
		known := false
		for _, s := range []error{core.ErrExists, core.ErrLeaseLost, core.ErrNotPending, core.ErrMoved, core.ErrInvalid} {
			known = known || errors.Is(item.Err, s)
		}
		if !known { // locked rows among them
			return false
		}
	}
	return true
}

// repeated calls f until it is answered: the first try within the limit, the others
// with time enough. before is run before the second one.
func repeated(t *testing.T, limit time.Duration, before func(first error), f func(context.Context) error) error {
	t.Helper()
	once := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return f(ctx)
	}
	err := once(limit)
	before(err)
	for end := time.Now().Add(20 * time.Second); !answered(err); {
		require.Less(t, time.Now(), end, "no answer: %v", err)
		time.Sleep(2 * time.Millisecond) // core waits 10 ms; the sooner, the worse
		err = once(10 * time.Second)
	}
	return err
}

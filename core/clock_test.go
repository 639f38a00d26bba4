package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The second step must not make the time of the first one the old reckoning.
func TestTakeOversGoByTheReckoningBeforeTheFirstOfSeveralSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew time.Duration
		c := &clock{born: time.Now(), read: func(context.Context) (time.Time, error) { return time.Now().Add(skew), nil }}
		sync := func() {
			_, err := c.sync(t.Context(), time.Second, 10*time.Second)
			require.NoError(t, err)
		}
		sync()
		skew = time.Hour
		sync()
		time.Sleep(5 * time.Second)
		skew += time.Minute
		sync()
		assert.WithinDuration(t, time.Now(), c.takeOver(), time.Millisecond)
		assert.WithinDuration(t, time.Now().Add(skew), c.now(), time.Millisecond)
		time.Sleep(10 * time.Second)
		assert.WithinDuration(t, time.Now().Add(skew), c.takeOver(), time.Millisecond)
	})
}

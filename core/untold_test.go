package core_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

func TestAnOutageOfTheIndexIsALineAMinuteInAProducersLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		idx := &lossyIndex{TimeIndex: p.idx}
		var log logBook
		producer, err := core.NewProducer(idx, p.store, core.ProducerOptions{Logger: log.logger()})
		require.NoError(t, err)
		n := 0
		produce := func() {
			require.NoError(t, producer.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(n)), Due: time.Now().Add(time.Hour)}))
			n++
		}
		produce()
		idx.away.Store(true)
		for range 1500 { // two and a half minutes
			produce()
			time.Sleep(100 * time.Millisecond)
		}
		assert.Len(t, log.with("can't be told"), 3)
		assert.Len(t, log.with("tasks=600"), 2, "each task is counted")
		idx.away.Store(false)
		time.Sleep(2 * time.Second)
		produce()
		produce()
		assert.Len(t, log.with("can be told again"), 1)
	})
}

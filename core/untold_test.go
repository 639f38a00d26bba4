package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
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

// slowAdds is an index that needs its time for each entry.
type slowAdds struct{ *heapindex.Index }

func (x slowAdds) Add(ctx context.Context, entries []core.Entry) error {
	select {
	case <-time.After(time.Duration(len(entries)) * 100 * time.Microsecond):
		return x.Index.Add(ctx, entries)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestALargeCallTellsTheIndexPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		index := slowAdds{heapindex.New()}
		producer, err := core.NewProducer(index, claim.NewMemory(claim.MemoryOptions{}), core.ProducerOptions{})
		require.NoError(t, err)
		entries := make([]core.Entry, 50_000) // five seconds' worth
		for i := range entries {
			entries[i] = core.Entry{ID: core.ID(fmt.Sprint(i)), Due: time.Now().Add(time.Hour)}
		}
		require.NoError(t, producer.Track(t.Context(), entries...))
		got, err := index.Due(t.Context(), time.Now().Add(2*time.Hour), len(entries))
		require.NoError(t, err)
		require.Len(t, got, len(entries))
	})
}

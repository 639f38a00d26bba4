package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// insertSizes notes the payload bytes of each Insert.
type insertSizes struct {
	core.Store
	sizes []int
}

func (s *insertSizes) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	n := 0
	for _, t := range tasks {
		n += len(t.Payload)
	}
	s.sizes = append(s.sizes, n)
	return s.Store.Insert(ctx, call, tasks)
}

// A hundred megabytes in one Insert take a database longer than one try may take,
// and every further try starts from the beginning.
func TestScheduleSplitsLargePayloadsSoThatEachTryIsShort(t *testing.T) {
	store := &insertSizes{Store: claim.NewMemory(claim.MemoryOptions{})}
	producer, err := core.NewProducer(heapindex.New(), store, core.ProducerOptions{})
	require.NoError(t, err)
	var tasks []core.Task
	for i := range 30 {
		tasks = append(tasks, core.Task{ID: core.ID(fmt.Sprint("t", i)), Payload: make([]byte, core.MaxPayloadBytes), Due: time.Now()})
	}
	tasks = append(tasks, tasks[3]) // refused, by its place in the whole
	err = producer.Schedule(t.Context(), tasks...)
	var refused *core.BatchError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Items, 1)
	require.Equal(t, 30, refused.Items[0].Index)
	total := 0
	for _, n := range store.sizes {
		require.LessOrEqual(t, n, 4<<20)
		total += n
	}
	require.Equal(t, 30<<20, total)

	err = producer.Schedule(t.Context(), tasks[29], tasks[28])
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Items, 2)
	require.ErrorIs(t, err, core.ErrExists)
}

package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
)

// A handler whose own SettleTx was refused, as a payment was quicker, is no cause
// for a warning; one whose result is refused without its knowing is.
func TestALossThatTheHandlerReportsIsNoWarning(t *testing.T) {
	for name, c := range map[string]struct {
		returns error
		warns   bool
	}{
		"reported": {fmt.Errorf("settle the order: %w", core.ErrLeaseLost), false},
		"unknown":  {errors.New("printer jam"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				idx, store := heapindex.New(), claim.NewMemory(claim.MemoryOptions{})
				prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: quiet()})
				require.NoError(t, err)
				var log bytes.Buffer
				refused := make(chan error, 1)
				h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
					_, err := store.Cancel(ctx, core.Call{Now: job.Now()}, []core.ID{job.Task.ID}) // as a payment would
					return errors.Join(err, c.returns)
				})
				stop := running(t, newScheduler(t, idx, store, h, core.Options{
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
					Observer: core.Observer{Settled: func(_ core.Settlement, err error) {
						refused <- err
					}},
				}))
				require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
				require.ErrorIs(t, <-refused, core.ErrLeaseLost)
				require.NoError(t, stop())
				if c.warns {
					assert.Contains(t, log.String(), "settlement refused")
				} else {
					assert.Empty(t, log.String())
				}
			})
		})
	}
}

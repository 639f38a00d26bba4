package core_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// panicking returns an Observer each func of which counts its calls and panics.
func panicking(called map[string]*atomic.Int64) core.Observer {
	var o core.Observer
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		called[name] = &atomic.Int64{}
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			called[name].Add(1)
			panic("jam in " + name)
		}))
	}
	return o
}

// Whatever panics in what the user handed in costs that call and nothing else.
func TestPanicsOfHooksAndTheBackOffCostOneCallEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		idx := newNamedIndex()
		called := map[string]*atomic.Int64{}
		var log logBook
		observer := panicking(called)
		prod, err := core.NewProducer(&lossyIndex{TimeIndex: p.idx}, store, core.ProducerOptions{Logger: log.logger(), Observer: observer})
		require.NoError(t, err)
		away := &lossyIndex{TimeIndex: p.idx}
		away.away.Store(true)
		untold, err := core.NewProducer(away, store, core.ProducerOptions{Logger: log.logger(), Observer: observer})
		require.NoError(t, err)
		var runs recorder
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			_ = runs.Handle(ctx, job)
			switch {
			case job.Task.ID == "fails" && runs.get("fails") == 1:
				return errors.New("paper jam")
			case job.Task.ID == "cancelled" && runs.get("cancelled") == 1:
				<-ctx.Done()
			}
			return nil
		})
		backoffs := 0
		stop := running(t, newScheduler(t, idx, &refusing{hookedStore: store}, h, core.Options{
			Logger: log.logger(), Slots: 100, Observer: observer,
			Backoff: func(int) time.Duration { backoffs++; panic("jam in Backoff") },
		}))
		for _, id := range []core.ID{"a", "fails", "cancelled", "refused"} {
			require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: id, Due: time.Now()}))
			require.NoError(t, untold.Schedule(t.Context(), core.Task{ID: "untold " + id, Due: time.Now()}))
		}
		time.Sleep(5 * time.Second)
		_, err = prod.Cancel(t.Context(), "cancelled")
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		store.set(failing("waiting", "claim"))
		time.Sleep(5 * time.Second)
		store.set(nil)
		idx.flush()
		time.Sleep(5 * time.Second)
		require.NoError(t, prod.Schedule(t.Context(), core.Task{ID: "b", Due: time.Now()}))
		time.Sleep(5 * time.Second)
		require.NoError(t, stop())

		for name, n := range called {
			assert.Positive(t, n.Load(), "%s was called", name)
			lines := log.with("func=Observer." + name + " ")
			if assert.NotEmpty(t, lines, "the panic of %s is told", name) {
				assert.Contains(t, lines[0], "jam in "+name)
				assert.Contains(t, lines[0], "guard_test.go", "with its stack")
				assert.LessOrEqual(t, len(lines), 2, "and not each time: by the producers' and the scheduler's guard")
			}
		}
		assert.Equal(t, 1, backoffs)
		assert.NotEmpty(t, log.with("func=Options.Backoff "))
		assert.Equal(t, 2, runs.get("fails"), "it was retried, after the default back-off")
		for _, id := range []core.ID{"a", "fails", "b", "refused"} {
			row, _ := p.store.Task(id)
			assert.Equal(t, claim.DoneState, row.Status, id)
		}
	})
}

// refusing refuses the first claim of "refused".
type refusing struct {
	*hookedStore
	refused atomic.Bool
}

func (s *refusing) Claim(ctx context.Context, ids []core.ID, lease core.Lease) ([]core.Claimed, error) {
	var all []core.Claimed
	for _, id := range ids {
		if id == "refused" && s.refused.CompareAndSwap(false, true) {
			all = append(all, core.Claimed{ID: id, Verdict: core.Refused})
			continue
		}
		got, err := s.hookedStore.Claim(ctx, []core.ID{id}, lease)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// jammed is a log's handler that panics.
type jammed struct{ slog.Handler }

func (jammed) Handle(context.Context, slog.Record) error { panic("printer jam") }

type jammedAtOnce struct{ slog.Handler }

func (jammedAtOnce) Enabled(context.Context, slog.Level) bool { panic("printer jam") }

func TestALoggerThatPanicsCostsLinesOnly(t *testing.T) {
	for name, h := range map[string]slog.Handler{"Handle": jammed{slog.DiscardHandler}, "Enabled": jammedAtOnce{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParts(t)
				r := &recorder{}
				store := &hookedStore{Store: p.store}
				idx := &lossyIndex{TimeIndex: p.idx}
				prod, err := core.NewProducer(idx, store, core.ProducerOptions{Logger: slog.New(h)})
				require.NoError(t, err)
				stop := running(t, newScheduler(t, idx, store, r, core.Options{Logger: slog.New(h), Observer: core.Observer{
					Swept: func(int, int) { panic("told to a log that panics") },
				}}))
				time.Sleep(time.Second)
				idx.away.Store(true)
				store.set(failing("waiting"))
				require.NoError(t, prod.Schedule(t.Context(), due("x")))
				time.Sleep(3 * time.Second)
				store.set(nil)
				idx.away.Store(false)
				time.Sleep(5 * time.Second)
				require.NoError(t, stop())
				assert.Equal(t, 1, r.get("x"))
			})
		})
	}
}

// A hook that blocks must not cost others their leases.
func TestHeartbeatsWaitForNoHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		free := make(chan struct{})
		blocked := map[string]*atomic.Int64{"LeaseLost": {}, "Failed": {}, "Health": {}}
		block := func(name string) { blocked[name].Add(1); <-free }
		var lost atomic.Int64
		h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
			if strings.HasPrefix(string(job.Task.ID), "long") {
				select {
				case <-time.After(5 * time.Minute):
				case <-ctx.Done():
					lost.Add(1)
				}
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		stop := running(t, newScheduler(t, p.idx, store, h, core.Options{Observer: core.Observer{
			LeaseLost: func(*core.Job, error) { block("LeaseLost") },
			Failed:    func(string, error) { block("Failed") },
			Health:    func(core.Health) { block("Health") },
		}}))
		require.NoError(t, p.prod.Schedule(t.Context(), due("long1"), due("long2"), due("cancelled")))
		time.Sleep(time.Second)
		_, err := p.prod.Cancel(t.Context(), "cancelled")
		require.NoError(t, err)
		time.Sleep(15 * time.Second)
		assert.EqualValues(t, 1, blocked["LeaseLost"].Load())
		store.set(failing("extend"))
		time.Sleep(2 * time.Second) // Failed waits behind it
		store.set(nil)
		time.Sleep(5 * time.Minute)
		assert.Zero(t, lost.Load(), "others' leases were extended all the while")
		close(free)
		require.NoError(t, stop())
		row, _ := p.store.Task("long1")
		assert.Equal(t, claim.DoneState, row.Status)
	})
}

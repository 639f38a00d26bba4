package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// ledger is what the producers were told.
type ledger struct {
	mu      sync.Mutex
	acked   []core.ID
	unknown map[string]int // how the calls of unknown outcome turned out
	calls   int
}

func (l *ledger) ids() []core.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acked)
}

// latest are the n ids that were acknowledged last.
func (l *ledger) latest(n int) []core.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acked[max(0, len(l.acked)-n):])
}

func (l *ledger) ack(ids []core.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.acked = append(l.acked, ids...)
}

func (l *ledger) resolved(how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unknown == nil {
		l.unknown = map[string]int{}
	}
	l.unknown[how]++
}

// produce schedules small batches until ctx is done. Each is repeated until its
// outcome is known, as an application would that can't lose it.
func (r *run) produce(ctx context.Context, name string, rng *rand.Rand) {
	for n := 0; ctx.Err() == nil; {
		var tasks []core.Task
		for range 1 + rng.IntN(8) {
			tasks = append(tasks, taskOf(rng, core.ID(fmt.Sprintf("%s-%d", name, n))))
			n++
		}
		r.schedule(tasks)
		select {
		case <-ctx.Done():
		case <-time.After(between(rng, 30*time.Millisecond, 120*time.Millisecond)):
		}
	}
}

// schedule is one batch, to its known end: it doesn't end with the producers' ctx.
func (r *run) schedule(tasks []core.Task) {
	var ids []core.ID
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	ctx := context.WithoutCancel(r.t.Context())
	err := r.b.Producer.Schedule(ctx, tasks...)
	for deadline := time.Now().Add(patience); err != nil; time.Sleep(50 * time.Millisecond) {
		var outcome *core.OutcomeError
		var batch *core.BatchError
		switch {
		case time.Now().After(deadline):
			r.t.Errorf("schedule: no known outcome within %v: %v", patience, err)
			return
		case errors.As(err, &outcome):
			stored, readErr := r.stored(ctx, ids)
			if readErr != nil {
				continue
			}
			if err = r.b.Producer.ScheduleCall(ctx, outcome.Call, tasks...); err == nil {
				r.ledger.resolved(map[bool]string{true: "had taken effect", false: "had not"}[stored > 0])
			}
		case errors.As(err, &batch):
			for _, item := range batch.Items {
				if !errors.Is(item.Err, core.ErrBusy) { // ErrExists would be of our own making
					r.t.Errorf("schedule %s: %v", item.ID, item.Err)
					return
				}
			}
			tasks = only(tasks, batch.Items)
			err = r.b.Producer.Schedule(ctx, tasks...)
		default: // it could not even read the clock: nothing was sent
			err = r.b.Producer.Schedule(ctx, tasks...)
		}
	}
	r.ledger.ack(ids)
}

// only keeps the tasks that failed.
func only(tasks []core.Task, failed []core.ItemError) []core.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(task core.Task) bool {
		return !slices.ContainsFunc(failed, func(item core.ItemError) bool { return item.ID == task.ID })
	})
}

// stored counts which of the ids have rows.
func (r *run) stored(ctx context.Context, ids []core.ID) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, id := range ids {
		var one int // ids are of our own making, letters and digits
		err := r.b.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+claim.DefaultTable+" WHERE id = '"+string(id)+"'").Scan(&one)
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

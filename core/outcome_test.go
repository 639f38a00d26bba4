package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// The pieces that an answer may be made of, and how they show in the table.
var pieces = map[string]func(now time.Time, inner error) error{
	"x":       func(time.Time, error) error { return errors.New("x") },
	"Settled": func(time.Time, error) error { return core.Settled },
	"kind":    func(time.Time, error) error { return core.ErrUnknownKind },
	"cancel":  func(time.Time, error) error { return context.Canceled },
	"drain":   func(time.Time, error) error { return core.ErrDraining },
	// These have something inside of them.
	"Dead":  func(_ time.Time, inner error) error { return core.Dead(inner) },
	"1m":    func(now time.Time, inner error) error { return core.RetryAt(now.Add(time.Minute), inner) },
	"1h":    func(now time.Time, inner error) error { return core.RetryAt(now.Add(time.Hour), inner) },
	"past":  func(now time.Time, inner error) error { return core.RetryAt(now.Add(-time.Hour), inner) },
	"never": func(_ time.Time, inner error) error { return core.RetryAt(time.Time{}, inner) },
}

// shapes are the ways to put the pieces together. Order doesn't matter.
var shapes = map[string]func(now time.Time, names []string) error{
	"inside": func(now time.Time, names []string) error { return nested(now, names) },
	"outside": func(now time.Time, names []string) error {
		var turned []string
		for _, n := range names {
			turned = append([]string{n}, turned...)
		}
		return nested(now, turned)
	},
	"joined": func(now time.Time, names []string) error {
		var all []error
		for _, n := range names {
			all = append(all, pieces[n](now, errors.New("y")))
		}
		return errors.Join(all...)
	},
	"joined the other way, in texts": func(now time.Time, names []string) error {
		var err error
		for i := range names {
			one := pieces[names[len(names)-1-i]](now, nil)
			if err == nil {
				err = fmt.Errorf("after all: %w", one)
			} else {
				err = fmt.Errorf("%w, and %w", err, one)
			}
		}
		return err
	},
}

// nested puts each piece into the one before; what can't have one inside is joined.
func nested(now time.Time, names []string) error {
	first, rest := pieces[names[0]], names[1:]
	if len(rest) == 0 {
		return first(now, nil)
	}
	switch names[0] {
	case "x", "Settled", "kind", "cancel", "drain":
		return fmt.Errorf("%w: %w", first(now, nil), nested(now, rest))
	}
	return first(now, nested(now, rest))
}

// The table of what a handler returns. Each line is tried in all shapes. Where a time is
// given the task is due at it; "soon" is after a back-off or a pause.
var answers = []struct {
	has      string
	running  string // with nothing else going on
	shutdown string // after ctx was cancelled since the scheduler shuts down
	expired  string // after ctx was cancelled since the lease could not be extended
}{
	{"x", "failed, soon", "failed, soon", "failed, soon"},
	{"cancel", "failed, soon", "back, now", "back, in 1s"},
	{"drain", "failed, soon", "back, now", "failed, soon"},
	{"x cancel", "failed, soon", "back, now", "back, in 1s"},
	{"kind", "back, soon", "back, soon", "back, soon"},
	{"kind x", "back, soon", "back, soon", "back, soon"},
	{"Settled", "settled", "settled", "settled"},
	{"Settled Settled", "settled", "settled", "settled"},
	{"Settled x", "failed, soon", "failed, soon", "failed, soon"},
	{"Settled kind", "back, soon", "back, soon", "back, soon"},
	{"Settled cancel", "failed, soon", "back, now", "back, in 1s"},
	{"Settled Dead", "dead", "dead", "dead"},
	{"Settled 1m", "failed, in 1m", "failed, in 1m", "failed, in 1m"},
	{"Dead", "dead", "dead", "dead"},
	{"Dead x", "dead", "dead", "dead"},
	{"Dead kind", "dead", "dead", "dead"},
	{"Dead 1m", "dead", "dead", "dead"},
	{"Dead cancel", "dead", "back, now", "back, in 1s"},
	{"Dead Settled x", "dead", "dead", "dead"},
	{"1m", "failed, in 1m", "failed, in 1m", "failed, in 1m"},
	{"1m x", "failed, in 1m", "failed, in 1m", "failed, in 1m"},
	{"1m 1h", "failed, in 1h", "failed, in 1h", "failed, in 1h"},
	{"1m 1h x", "failed, in 1h", "failed, in 1h", "failed, in 1h"},
	{"1m kind", "back, in 1m", "back, in 1m", "back, in 1m"},
	{"1m 1h kind", "back, in 1h", "back, in 1h", "back, in 1h"},
	{"past kind", "back, soon", "back, soon", "back, soon"},
	{"1m cancel", "failed, in 1m", "back, in 1m", "back, in 1m"},
	{"1m drain", "failed, in 1m", "back, in 1m", "failed, in 1m"},
	{"past", "failed, now", "failed, now", "failed, now"},
	{"past 1m", "failed, in 1m", "failed, in 1m", "failed, in 1m"},
	{"never", "failed, soon", "failed, soon", "failed, soon"},
	{"never 1m", "failed, in 1m", "failed, in 1m", "failed, in 1m"},
	{"past cancel", "failed, now", "back, now", "back, in 1s"},
}

func TestWhatAHandlerReturnsDecidesHowItsTaskGoesOn(t *testing.T) {
	for _, line := range answers {
		for shape, put := range shapes {
			for when, want := range map[string]string{"running": line.running, "shutdown": line.shutdown, "expired": line.expired} {
				t.Run(line.has+"/"+shape+"/"+when, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						got := goesOn(t, when, func(now time.Time) error { return put(now, strings.Fields(line.has)) })
						assert.Equal(t, want, got)
					})
				})
			}
		}
	}
}

func TestNilIsDoneWhateverBecameOfTheContext(t *testing.T) {
	for _, when := range []string{"running", "shutdown", "expired"} {
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, "done", goesOn(t, when, func(time.Time) error { return nil }), when)
		})
	}
}

// goesOn returns how a task goes on whose handler returns answer.
func goesOn(t *testing.T, when string, answer func(now time.Time) error) string {
	t.Helper()
	p := newParts(t)
	store := &hookedStore{Store: p.store}
	returned := make(chan time.Time, 1)
	settled := make(chan core.Settlement, 10)
	h := core.HandlerFunc(func(ctx context.Context, job *core.Job) error {
		if when != "running" {
			<-ctx.Done()
		}
		select {
		case returned <- job.Now():
		default: // it came again
			return nil
		}
		return answer(job.Now())
	})
	if when == "expired" {
		store.set(failing("extend"))
	}
	stop := running(t, newScheduler(t, p.idx, store, h, core.Options{
		Drain: -1, Backoff: func(int) time.Duration { return 10 * time.Second },
		Observer: core.Observer{Settled: func(s core.Settlement, err error) {
			assert.NoError(t, err)
			settled <- s
		}},
	}))
	require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: "x", Due: time.Now()}))
	time.Sleep(time.Second)
	if when == "shutdown" {
		require.NoError(t, stop())
	}
	s := <-settled
	after := s.Due.Sub(<-returned)
	times := map[time.Duration]string{0: "now", time.Second: "in 1s", time.Minute: "in 1m", time.Hour: "in 1h", 10 * time.Second: "soon"}
	words, ok := times[after]
	if !ok && after > 100*time.Millisecond && after <= 250*time.Millisecond { // the pause of a kind
		words = "soon"
	}
	switch s.Outcome {
	case core.Done:
		return "done"
	case core.DeadLetter:
		return "dead"
	case core.Retry:
		return "failed, " + words
	case core.Released:
		return "back, " + words
	default:
		return "settled"
	}
}

package sqliteclaim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// journal is a session that writes down what is done on it.
type journal struct {
	querier
	lines     []string
	badCommit error
}

func (j *journal) begin(context.Context) error { return j.write("begin", nil) }

func (j *journal) commit(context.Context) error { return j.write("commit", j.badCommit) }

func (j *journal) rollback(context.Context) { _ = j.write("rollback", nil) }

func (j *journal) release() bool { return true }

func (j *journal) close() error { return j.write("close", nil) }

func (j *journal) write(line string, err error) error {
	j.lines = append(j.lines, line)
	return err
}

// waiting makes calls that wait for their turn behind a first one, lets it end, and
// returns their errors. Each is named by its place; change alters it before its call.
func (j *journal) waiting(t *testing.T, w *writer, n int, change func(i int, c *work)) []error {
	t.Helper()
	errs := make([]error, n)
	held := make(chan struct{})
	go func() {
		_ = w.write(t.Context(), 1, func(querier) error {
			<-held
			return j.write("first", nil)
		})
	}()
	synctest.Wait()
	for i := range n {
		c := &work{ctx: t.Context(), items: 1, run: func(querier) error { return j.write(fmt.Sprint(i), nil) }}
		change(i, c)
		go func() { errs[i] = w.write(c.ctx, c.items, c.run) }()
		synctest.Wait() // so that they come in order
	}
	close(held)
	synctest.Wait()
	return errs
}

func TestCallsThatWaitShareACommit(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change    func(i int, c *work)
		badCommit error
		want      []string
		errs      []error
	}{
		"together": {
			want: []string{"begin", "first", "0", "1", "2", "commit"},
			errs: []error{nil, nil, nil},
		},
		"no more items than a transaction covers": {
			change: func(i int, c *work) {
				if i == 1 {
					c.items = maxItems - 1
				}
			},
			want: []string{"begin", "first", "0", "commit", "begin", "1", "2", "commit"},
			errs: []error{nil, nil, nil},
		},
		"one that fails": {
			change: func(i int, c *work) {
				if run := c.run; i == 1 {
					c.run = func(q querier) error { return errors.Join(run(q), broken) }
				}
			},
			want: []string{
				"begin", "first", "0", "1", "rollback", "begin", "first", "commit", "begin", "0", "commit",
				"begin", "1", "rollback", "begin", "2", "commit",
			},
			errs: []error{nil, broken, nil},
		},
		"one that is cancelled while it waits": {
			change: func(i int, c *work) {
				if i == 1 {
					ctx, cancel := context.WithCancel(c.ctx)
					c.ctx = ctx
					cancel()
				}
			},
			want: []string{"begin", "first", "0", "2", "commit"},
			errs: []error{nil, context.Canceled, nil},
		},
		"a commit that fails": {
			badCommit: broken,
			want:      []string{"begin", "first", "0", "1", "2", "commit", "rollback"},
			errs:      []error{broken, broken, broken},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{badCommit: c.badCommit}
				w := newWriter(false, func(context.Context) (session, error) { return j, nil })
				errs := j.waiting(t, w, 3, func(i int, work *work) {
					if c.change != nil {
						c.change(i, work)
					}
				})
				require.Equal(t, c.want, j.lines)
				for i, want := range c.errs {
					require.ErrorIs(t, errs[i], want, "call %d", i)
				}
				require.NoError(t, w.close())
				require.Equal(t, "close", j.lines[len(j.lines)-1])
				require.ErrorIs(t, w.write(t.Context(), 1, func(querier) error { return nil }), errClosed)
				require.NoError(t, w.close(), "twice")
			})
		})
	}
}

// A call that leaves the queue leaves the others their turns.
func TestACallLeavesTheQueueWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		w := newWriter(false, func(context.Context) (session, error) { return j, nil })
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		errs := j.waiting(t, w, 2, func(i int, c *work) {
			if i == 1 {
				go func() { left <- w.write(ctx, 1, func(querier) error { return j.write("left", nil) }) }()
				synctest.Wait()
				cancel()
				synctest.Wait()
				require.ErrorIs(t, <-left, context.Canceled, "while the first is at work")
			}
		})
		require.Equal(t, []error{nil, nil}, errs)
		require.Equal(t, []string{"begin", "first", "0", "1", "commit"}, j.lines)
	})
}

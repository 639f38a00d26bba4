package sqliteclaim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// journal is a session that writes down what is done on it.
type journal struct {
	querier
	lines     []string
	badCommit error
	lock      func(ctx context.Context) error // waits for the file's lock; nil: it is free
}

func (j *journal) begin(ctx context.Context) error {
	j.lines = append(j.lines, "begin")
	if j.lock == nil {
		return nil
	}
	return j.lock(ctx)
}

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
					require.Equal(t, want != nil && c.badCommit == nil, errors.Is(errs[i], core.ErrNotDone), "call %d: only a commit's outcome can be unknown", i)
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

// After a failure each call waits for the file's lock under its own context, and while
// another waits for it can leave.
func TestCallsMadeAloneKeepTheirContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const free = 4 * time.Second // another process has the file until then
		start := time.Now()
		j, begins := &journal{}, 0
		j.lock = func(ctx context.Context) error {
			if begins++; begins == 1 {
				return nil
			}
			select {
			case <-time.After(free - time.Since(start)):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		w := newWriter(false, func(context.Context) (session, error) { return j, nil })
		cancelled, cancel := context.WithCancel(t.Context())
		held := make(chan struct{})
		type end struct {
			after time.Duration
			err   error
		}
		var got []end
		var want []end
		for i, c := range []struct {
			ctx   context.Context
			limit time.Duration
			run   func() error // the first time
			want  end
		}{
			{limit: time.Second, run: func() error { <-held; return nil }, want: end{time.Second, context.DeadlineExceeded}},
			{limit: 3 * time.Second, want: end{3 * time.Second, context.DeadlineExceeded}},
			{limit: 2 * time.Second, want: end{2 * time.Second, context.DeadlineExceeded}}, // in the queue
			{limit: time.Minute, ctx: cancelled, want: end{100 * time.Millisecond, context.Canceled}},
			{limit: time.Minute, run: func() error {
				cancel()
				time.Sleep(100 * time.Millisecond) // the call before wants to leave, and is taken
				return errors.New("the group fails")
			}, want: end{free, nil}},
		} {
			got, want = append(got, end{}), append(want, c.want)
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			go func() {
				ctx, cancel := context.WithTimeout(c.ctx, c.limit)
				defer cancel()
				run := c.run
				err := w.write(ctx, 1, func(querier) error {
					err := j.write(fmt.Sprint(i), nil)
					if first := run; first != nil {
						run = nil
						err = first()
					}
					return err
				})
				got[i] = end{time.Since(start), err}
			}()
			synctest.Wait() // so that they come in order
		}
		close(held)
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range want {
			require.Equal(t, want[i].after, got[i].after, "call %d", i)
			require.ErrorIs(t, got[i].err, want[i].err, "call %d", i)
			require.Equal(t, want[i].err != nil, errors.Is(got[i].err, core.ErrNotDone), "call %d: what came before a commit changed nothing", i)
		}
		require.Equal(t, []string{
			"begin", "0", "1", "2", "3", "4", "rollback",
			"begin", "rollback", "begin", "rollback", "begin", "4", "commit",
		}, j.lines)
	})
}

// A panic is its call's own: the others are made, and none of its work is committed.
func TestAPanicComesUpInItsOwnCall(t *testing.T) {
	const returned, panicked, exited = "returned", "panicked: mine", "exited"
	crash := func(querier) error { panic("mine") }
	exit := func(querier) error { runtime.Goexit(); return nil }
	for name, c := range map[string]struct {
		leader, mate func(querier) error
		ends         []string
		lines        []string
	}{
		"the leader's": {
			leader: crash,
			ends:   []string{panicked, returned, returned},
			lines:  []string{"begin", "0", "rollback", "begin", "1", "2", "commit"},
		},
		"another's": {
			mate: crash,
			ends: []string{returned, panicked, returned},
			lines: []string{
				"begin", "0", "1", "rollback", "begin", "0", "commit", "begin", "1", "rollback", "begin", "2", "commit",
			},
		},
		"the end of the leader's goroutine": {
			leader: exit,
			ends:   []string{exited, returned, returned},
			lines:  []string{"begin", "0", "rollback", "begin", "1", "2", "commit"},
		},
		"the end of the leader's goroutine by another": {
			mate:  exit,
			ends:  []string{exited, exited, returned},
			lines: []string{"begin", "0", "1", "rollback", "begin", "1", "rollback", "begin", "2", "commit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				w := newWriter(false, func(context.Context) (session, error) { return j, nil })
				held := make(chan struct{})
				ends := make([]string, 3)
				for i, run := range []func(querier) error{c.leader, c.mate, nil} {
					go func() {
						ends[i] = exited
						defer func() {
							if p := recover(); p != nil {
								ends[i] = fmt.Sprint("panicked: ", p)
							}
						}()
						err := w.write(t.Context(), 1, func(q querier) error {
							err := j.write(fmt.Sprint(i), nil)
							<-held
							if run != nil {
								err = run(q)
							}
							return err
						})
						ends[i] = returned
						if err != nil {
							ends[i] = err.Error()
						}
					}()
					synctest.Wait()
				}
				close(held)
				synctest.Wait()
				require.Equal(t, c.ends, ends)
				require.Equal(t, c.lines, j.lines)
				require.NoError(t, w.close())
			})
		})
	}
}

// On a real file: the next call has a transaction, and what the panic left isn't in it.
func TestAPanicLeavesNoTransactionOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	opened, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(100)")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	pooled, err := New(db, Options{})
	require.NoError(t, err)
	for i, s := range []*Store{opened, pooled} {
		create := func(q querier) error {
			_, err := q.exec(t.Context(), fmt.Sprint("CREATE TABLE of_", i, " (n INTEGER)"))
			return err
		}
		require.PanicsWithValue(t, "mine", func() {
			_ = s.write(t.Context(), 1, func(q querier) error {
				require.NoError(t, create(q))
				panic("mine")
			})
		})
		for _, other := range []*Store{opened, pooled} {
			require.NoError(t, other.write(t.Context(), 1, func(querier) error { return nil }), "the lock is free")
		}
		require.NoError(t, s.write(t.Context(), 1, create), "the table isn't there yet")
	}
}

// unruly is a session whose rollback fails.
type unruly struct{ journal }

func (u *unruly) release() bool { return u.lines[len(u.lines)-1] != "rollback" }

func TestASessionThatCannotRollBackIsNotKept(t *testing.T) {
	var sessions []*unruly
	w := newWriter(false, func(context.Context) (session, error) {
		sessions = append(sessions, &unruly{})
		return sessions[len(sessions)-1], nil
	})
	require.Panics(t, func() { _ = w.write(t.Context(), 1, func(querier) error { panic("mine") }) })
	for range 2 {
		require.NoError(t, w.write(t.Context(), 1, func(querier) error { return nil }))
	}
	require.Len(t, sessions, 2)
	require.Equal(t, []string{"begin", "rollback"}, sessions[0].lines)
	require.Equal(t, []string{"begin", "commit", "begin", "commit"}, sessions[1].lines)
}

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// statement is one Insert that a station's store was given.
type statement struct {
	call core.Call
	ids  []core.ID
}

func (s statement) has(id core.ID) bool { return slices.Contains(s.ids, id) }

// station is a producer whose store notes each statement. Those with an id that
// starts with "block" are held up until open is called; on does what it likes with
// the others.
type station struct {
	parts
	core.Store
	t    *testing.T
	idx  *addBook
	prod *core.Producer
	on   func(ctx context.Context, st statement, insert func() error) error

	mu   sync.Mutex
	all  []statement
	gate chan struct{}
	open func()
}

// addBook notes how many entries each Add brings, but for those of "block".
type addBook struct {
	core.TimeIndex
	on    func()
	mu    sync.Mutex
	sizes []int
}

func (x *addBook) Add(ctx context.Context, entries []core.Entry) error {
	if !strings.HasPrefix(string(entries[0].ID), "block") {
		x.mu.Lock()
		x.sizes = append(x.sizes, len(entries))
		x.mu.Unlock()
		if x.on != nil {
			x.on()
		}
	}
	return x.TimeIndex.Add(ctx, entries)
}

func (x *addBook) added() []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.sizes)
}

func newStation(t *testing.T, opt core.ProducerOptions) *station {
	t.Helper()
	s := &station{parts: newParts(t), t: t, gate: make(chan struct{})}
	s.Store, s.idx = s.store, &addBook{TimeIndex: s.parts.idx}
	s.open = sync.OnceFunc(func() { close(s.gate) })
	if opt.Logger == nil {
		opt.Logger = quiet()
	}
	var err error
	s.prod, err = core.NewProducer(s.idx, s, opt)
	require.NoError(t, err)
	return s
}

func (s *station) Insert(ctx context.Context, call core.Call, tasks []core.Task) error {
	st := statement{call: call}
	for _, task := range tasks {
		st.ids = append(st.ids, task.ID)
	}
	s.mu.Lock()
	s.all = append(s.all, st)
	s.mu.Unlock()
	insert := func() error { return s.Store.Insert(ctx, call, tasks) }
	switch {
	case strings.HasPrefix(string(st.ids[0]), "block"):
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	case s.on != nil:
		return s.on(ctx, st, insert)
	}
	return insert()
}

// statements returns those that were not held up.
func (s *station) statements() []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(st statement) bool { return strings.HasPrefix(string(st.ids[0]), "block") })
}

func (s *station) stored(id core.ID) bool {
	_, ok := s.store.Task(id)
	return ok
}

// call schedules in a goroutine of its own and returns when that waits.
func (s *station) call(ctx context.Context, tasks ...core.Task) (answer <-chan error) {
	c := make(chan error, 1)
	go func() {
		defer close(c)
		c <- s.prod.Schedule(ctx, tasks...)
	}()
	synctest.Wait()
	return c
}

// crowd has as many inserts in flight as make newcomers wait.
func (s *station) crowd() {
	for i := range 2 {
		answer := s.call(context.Background(), due(fmt.Sprint("block", i))) // the test's own ends before its cleanups
		s.t.Cleanup(func() { assert.NoError(s.t, <-answer) })
	}
	s.t.Cleanup(s.open)
}

func due(id string) core.Task { return core.Task{ID: core.ID(id), Due: time.Now()} }

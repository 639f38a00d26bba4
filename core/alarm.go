package core

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// alarm wakes the goroutines that wait for due times: all that wait for the same
// one together.
type alarm struct {
	mu     sync.Mutex
	at     map[int64]*instant // by due time
	next   instants
	timers []alarmTimer // all set alike, the first that goes off counts; nil until somebody waits
	closed bool
	joined sync.WaitGroup
}

// alarmTimer is a timer that one goroutine waits for.
type alarmTimer interface {
	// set makes it go off after d, at once where d is not above 0, and not before.
	set(d time.Duration)
	// wait returns when it goes off; false: it was closed, or goes off no more.
	wait() bool
	close()
}

// instant is a due time that somebody waits for.
type instant struct {
	due  int64         // milliseconds of the store's time
	when time.Time     // by the process's clock
	come chan struct{} // closed when it has come
}

func newAlarm() *alarm { return &alarm{at: make(map[int64]*instant)} }

// wait waits until due, which is d away; false when ctx is done or stop is closed
// before.
func (a *alarm) wait(ctx context.Context, stop <-chan struct{}, due time.Time, d time.Duration) bool {
	select {
	case <-a.instant(due, d):
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}

// instant returns what is closed when due has come; after close, nil.
func (a *alarm) instant(due time.Time, d time.Duration) <-chan struct{} {
	key, when := due.UnixMilli(), time.Now().Add(d)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	i, known := a.at[key]
	switch {
	case known && when.Add(time.Millisecond).Before(i.when): // the store's clock was found to be ahead
		i.when = when
		heap.Init(&a.next)
	case known:
		return i.come
	default:
		i = &instant{due: key, when: when, come: make(chan struct{})}
		a.at[key] = i
		heap.Push(&a.next, i)
	}
	if a.timers == nil {
		a.timers = newAlarmTimers()
		for _, t := range a.timers {
			a.joined.Go(func() { a.run(t) })
		}
	}
	if a.next[0] == i {
		a.set()
	}
	return i.come
}

// set sets the timers for the next instant. The caller holds the lock.
func (a *alarm) set() {
	d := time.Until(a.next[0].when)
	for _, t := range a.timers {
		t.set(d)
	}
}

func (a *alarm) run(t alarmTimer) {
	for t.wait() {
		a.ring()
	}
}

// ring wakes those whose instants have come.
func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for now := time.Now(); len(a.next) > 0 && !a.next[0].when.After(now); {
		i := heap.Pop(&a.next).(*instant)
		delete(a.at, i.due)
		close(i.come)
	}
	if len(a.next) > 0 {
		a.set()
	}
}

// close ends the alarm's goroutines, when nobody waits any more.
func (a *alarm) close() {
	a.mu.Lock()
	a.closed, a.next = true, nil
	for _, t := range a.timers {
		t.close()
	}
	a.mu.Unlock()
	a.joined.Wait()
}

// instants is a heap: the earliest first.
type instants []*instant

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i].when.Before(h[j].when) }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(*instant)) }
func (h *instants) Pop() any {
	last := len(*h) - 1
	i := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return i
}

// goTimer is one of Go's timers. On Linux, where nothing else is to be done, it may be
// a millisecond late, as the runtime waits in whole ones (https://go.dev/issue/44343).
type goTimer struct {
	timer *time.Timer
	stop  chan struct{}
}

func newGoTimer() *goTimer {
	t := &goTimer{timer: time.NewTimer(time.Hour), stop: make(chan struct{})}
	t.timer.Stop()
	return t
}

func (t *goTimer) set(d time.Duration) { t.timer.Reset(d) }

func (t *goTimer) wait() bool {
	select {
	case <-t.timer.C:
		return true
	case <-t.stop:
		return false
	}
}

func (t *goTimer) close() {
	t.timer.Stop()
	close(t.stop)
}

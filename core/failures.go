package core

import "sync"

// failureBook counts failures by id, for claim stores that don't count attempts.
type failureBook struct {
	mu   sync.Mutex
	fail map[ID]int
}

// mostCounted bounds a failureBook: a process that has more tasks failing than
// that has other worries, and forgetting one costs it more tries.
const mostCounted = 10_000

func (b *failureBook) get(id ID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fail[id]
}

func (b *failureBook) set(id ID, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail == nil {
		b.fail = make(map[ID]int)
	}
	if _, ok := b.fail[id]; !ok && len(b.fail) >= mostCounted {
		for other := range b.fail { // any one: an order would cost more than it is worth
			delete(b.fail, other)
			break
		}
	}
	b.fail[id] = n
}

func (b *failureBook) forget(id ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fail, id)
}

// note counts what a settlement, which the store has accepted, says about a job
// that the store doesn't count.
func (b *failureBook) note(j *Job, s Settlement) {
	switch {
	case !j.uncounted:
	case s.Outcome == Retry:
		b.set(j.Grant.ID, j.Failures()+1)
	case s.Outcome == Done, s.Outcome == DeadLetter, s.Outcome == 0:
		b.forget(j.Grant.ID)
	}
}

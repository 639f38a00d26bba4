package core

import (
	"log/slog"
	"sync"
)

// notices are calls of hooks and of the log that nothing may wait for: heartbeats would
// come too late. They are made one after the other, in their order, in a goroutine that
// is there while there are some.
type notices struct {
	log *slog.Logger

	mu      sync.Mutex
	list    []func()
	telling bool
	dropped int

	joined sync.WaitGroup
}

// mostNotices is how many may wait behind one that blocks; more are left out.
const mostNotices = 1000

func (n *notices) add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) >= mostNotices {
		n.dropped++
		return
	}
	n.list = append(n.list, f)
	if !n.telling {
		n.telling = true
		n.joined.Go(n.tell)
	}
}

func (n *notices) tell() {
	for {
		n.mu.Lock()
		if len(n.list) == 0 {
			n.telling = false
			n.mu.Unlock()
			return
		}
		f, dropped := n.list[0], n.dropped
		n.list, n.dropped = n.list[1:], 0
		n.mu.Unlock()
		if dropped > 0 {
			n.log.Warn("dueclaim: a hook or the log has blocked; calls of Observer's Failed, Health and LeaseLost are left out", "calls", dropped)
		}
		f()
	}
}

// wait waits for all.
func (n *notices) wait() { n.joined.Wait() }

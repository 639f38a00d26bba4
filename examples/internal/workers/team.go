package workers

import (
	"errors"
	"fmt"
	"time"
)

// patience is how long a worker gets to finish what it has.
const patience = 15 * time.Second

// Team is a number of workers.
type Team struct {
	members []*Process
	killed  string
}

// StartTeam starts n workers, named worker-1, worker-2 and so on; orders returns
// what each of them is told. Stop the team also when it fails.
func StartTeam[T any](n int, orders func(name string) T) (*Team, error) {
	t := &Team{}
	for i := range n {
		name := fmt.Sprintf("worker-%d", i+1)
		p, err := Start(name, orders(name))
		if err != nil {
			return t, err
		}
		t.members = append(t.members, p)
	}
	return t, nil
}

// Len returns how many workers are left.
func (t *Team) Len() int { return len(t.members) }

// Last returns the name of the last worker that is left: the one that KillLast
// kills.
func (t *Team) Last() string { return t.members[len(t.members)-1].Name }

// KillLast kills the last worker.
func (t *Team) KillLast() {
	n := len(t.members) - 1
	p := t.members[n]
	t.members = t.members[:n]
	t.killed = p.Name
	p.Kill()
}

// Killed returns the name of the worker that was killed, or "".
func (t *Team) Killed() string { return t.killed }

// Check returns an error when a worker has ended by itself.
func (t *Team) Check() error {
	for _, p := range t.members {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended by itself: %v", p.Name, p.cmd.ProcessState)
		default:
		}
	}
	return nil
}

// Stop ends the workers that are left, side by side, each when it has finished
// what it has, and joins their errors. A second call does nothing.
func (t *Team) Stop() error {
	errs := make(chan error, len(t.members))
	for _, p := range t.members {
		go func() { errs <- p.Stop(patience) }()
	}
	var all []error
	for range t.members {
		all = append(all, <-errs)
	}
	t.members = nil
	return errors.Join(all...)
}

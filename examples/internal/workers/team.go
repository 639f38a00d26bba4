package workers

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// patience is how long a worker gets to finish what it has.
const patience = 15 * time.Second

// Team is a number of workers.
type Team struct {
	members []*Process
	killed  string
	started int
	start   func(name string) (*Process, error)
}

// StartTeam starts n workers, named worker-1, worker-2 and so on; orders returns
// what each of them is told. Stop the team also when it fails.
func StartTeam[T any](n int, orders func(name string) T) (*Team, error) {
	return StartTeamHearing[T, struct{}](n, orders, nil)
}

// StartTeamHearing is StartTeam for workers that tell the parent something: hear
// is called with the name of the worker and its message, by a goroutine for each
// worker.
func StartTeamHearing[T, M any](n int, orders func(name string) T, hear func(name string, message M)) (*Team, error) {
	t := &Team{start: func(name string) (*Process, error) {
		if hear == nil {
			return Start(name, orders(name))
		}
		return StartHearing(name, orders(name), func(message M) { hear(name, message) })
	}}
	for range n {
		if err := t.Add(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Add starts one more worker.
func (t *Team) Add() error {
	t.started++
	p, err := t.start(fmt.Sprintf("worker-%d", t.started))
	if err != nil {
		return err
	}
	t.members = append(t.members, p)
	return nil
}

// Names returns the names of the workers that are left.
func (t *Team) Names() []string {
	names := make([]string, len(t.members))
	for i, p := range t.members {
		names[i] = p.Name
	}
	return names
}

// Len returns how many workers are left.
func (t *Team) Len() int { return len(t.members) }

// Last returns the name of the last worker that is left: the one that KillLast
// kills.
func (t *Team) Last() string { return t.members[len(t.members)-1].Name }

// KillLast kills the last worker.
func (t *Team) KillLast() { t.kill(len(t.members) - 1) }

// Kill kills the worker of that name, if there is one.
func (t *Team) Kill(name string) {
	if i := slices.Index(t.Names(), name); i >= 0 {
		t.kill(i)
	}
}

func (t *Team) kill(i int) {
	p := t.members[i]
	t.members = slices.Delete(t.members, i, i+1)
	t.killed = p.Name
	p.Kill()
}

// Killed returns the name of the last worker that was killed, or "".
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

package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Mux is a Handler that chooses another one by the task's kind. Its zero value
// is ready. Kinds may be added while it is in use. Mistakes in adding them (a nil
// handler, a kind twice) are kept and returned by New and by Err.
type Mux struct {
	mu       sync.RWMutex
	handlers map[string]Handler
	mistakes []error
}

// Register makes h the handler of tasks of the given kind. See also the function
// Handle, which decodes the payload.
func (m *Mux) Register(kind string, h Handler) {
	if f, ok := h.(HandlerFunc); ok && f == nil {
		h = nil
	}
	m.register(kind, h)
}

// Handle registers f for tasks of the given kind whose payload is the JSON form
// of a T. A payload that doesn't fit T is a failure of that attempt (it may be
// meant for a newer version of the program): it is retried and then dead, and f
// doesn't see it. An empty payload is the zero T.
func Handle[T any](m *Mux, kind string, f func(ctx context.Context, job *Job, payload T) error) {
	if f == nil {
		m.register(kind, nil)
		return
	}
	m.register(kind, HandlerFunc(func(ctx context.Context, job *Job) error {
		var payload T
		if len(job.Task.Payload) > 0 {
			if err := json.Unmarshal(job.Task.Payload, &payload); err != nil {
				return fmt.Errorf("payload of task %q, kind %q, doesn't fit %T: %w", job.Task.ID, kind, payload, err)
			}
		}
		return f(ctx, job, payload)
	}))
}

func (m *Mux) register(kind string, h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, twice := m.handlers[kind]
	switch err := checkKind(kind); {
	case err != nil:
		m.mistakes = append(m.mistakes, err)
	case h == nil:
		m.mistakes = append(m.mistakes, fmt.Errorf("%w: the handler for kind %q is nil", ErrInvalid, kind))
	case twice:
		m.mistakes = append(m.mistakes, fmt.Errorf("%w: kind %q has two handlers", ErrInvalid, kind))
	default:
		if m.handlers == nil {
			m.handlers = make(map[string]Handler)
		}
		m.handlers[kind] = h
	}
}

// Err returns the mistakes made in adding handlers, or nil.
func (m *Mux) Err() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return errors.Join(m.mistakes...)
}

// Handle calls the handler of the job's kind; it makes Mux a Handler. For a kind
// without one it returns an error that wraps ErrUnknownKind.
func (m *Mux) Handle(ctx context.Context, job *Job) error {
	m.mu.RLock()
	h := m.handlers[job.Task.Kind]
	var known []string
	if h == nil {
		known = slices.Sorted(maps.Keys(m.handlers))
	}
	m.mu.RUnlock()
	if h == nil {
		return fmt.Errorf("%w: %q (this process knows: %s)", ErrUnknownKind, job.Task.Kind, strings.Join(known, ", "))
	}
	return h.Handle(ctx, job)
}

package core

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels of the contract. Adapters return them inside a *BatchError,
// one an item; callers test with errors.Is, which looks into the items.
var (
	// ErrExists: a live task has that id.
	ErrExists = errors.New("a live task with this id exists")
	// ErrLeaseLost: the grant is not (or no longer) the newest of its task.
	ErrLeaseLost = errors.New("lease lost: the task was granted to another holder, finished or cancelled")
	// ErrNotPending: the task is running, finished or unknown.
	ErrNotPending = errors.New("task is not pending")
	// ErrMoved: the task's due time is not the one that the caller expected.
	ErrMoved = errors.New("task is due at another time than expected")
	// ErrInvalid: an argument breaks a rule; nothing was done for it.
	ErrInvalid = errors.New("invalid")
	// ErrUnfinished: Settle of a Done whose row still stands as it was, in a store
	// where the handler's own step is what completes the task: the handler returned
	// nil and did not do it. Nothing was changed. The scheduler takes the attempt
	// for a failure with this error's text, and settles the task again as such.
	// Stores that complete the task by Settle never return it.
	ErrUnfinished = errors.New("the handler returned nil, but its step was not done")
	// ErrBusy: the row is locked by another transaction and is as it was.
	ErrBusy = errors.New("row is locked by another transaction")
	// ErrNotDone: nothing of the call took effect, for certain, and a repeat may help:
	// the server is read-only, no connection was to be had, or the call arrived after
	// its By. It is the error of a whole call, never of an item; a call some part of
	// which took effect never has it.
	ErrNotDone = errors.New("not done, nothing was changed")
	// ErrNoConnection is the ErrNotDone of a call that got no connection from the
	// caller's own pool in time: the backend was not asked, so that it says nothing of
	// its health.
	ErrNoConnection = fmt.Errorf("%w: no connection of the pool came free", ErrNotDone)
	// ErrNotMigrated: the store's table isn't there, or not as this version needs
	// it. Nothing was done, and no repeat helps before the store's Migrate has run.
	ErrNotMigrated = errors.New("is missing or has another shape: run Migrate")
	// ErrDraining is the cause of a handler's context that is cancelled because
	// the scheduler shuts down. A handler that then returns it, or the context's
	// own error, or an error that wraps one of them, gives the task back: the
	// attempt is not counted.
	ErrDraining = errors.New("the scheduler is shutting down")
)

// BatchError says which items of a batch failed; all others took effect.
type BatchError struct {
	// Items is never empty and is ordered by Index.
	Items []ItemError
}

// ItemError is one item's failure.
type ItemError struct {
	Index int // the item's place in the caller's slice
	ID    ID
	Err   error
}

// Error names the number of failed items and the first few of them.
func (e *BatchError) Error() string {
	const shown = 3
	var b strings.Builder
	if len(e.Items) != 1 {
		fmt.Fprintf(&b, "%d items failed, all others took effect: ", len(e.Items))
	}
	for i, item := range e.Items {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(e.Items)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(item.Error())
	}
	return b.String()
}

// Unwrap returns the items' errors, so that errors.Is and errors.As look into
// them.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Items))
	for i := range e.Items {
		errs[i] = e.Items[i]
	}
	return errs
}

// Error names the item by its place and id.
func (e ItemError) Error() string { return fmt.Sprintf("item %d, id %q: %v", e.Index, e.ID, e.Err) }

// Unwrap returns the item's error.
func (e ItemError) Unwrap() error { return e.Err }

// NewBatchError returns a *BatchError of items, or nil when there are none. It
// returns error, not *BatchError, so that the nil is a nil error.
func NewBatchError(items []ItemError) error {
	if len(items) == 0 {
		return nil
	}
	return &BatchError{Items: items}
}

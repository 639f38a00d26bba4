package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// batch is the valid part of a caller's slice, as it goes to an adapter: without
// bad items and without a second item of the same id.
type batch[T any] struct {
	items  []T
	places []int // of items in the caller's slice
	bad    []ItemError
}

// newBatch copies what check lets pass.
func newBatch[T any](all []T, check func(T) (ID, error)) batch[T] {
	b := batch[T]{items: make([]T, 0, len(all)), places: make([]int, 0, len(all))}
	first := make(map[ID]int, len(all))
	for i, item := range all {
		id, err := check(item)
		if at, twice := first[id]; err == nil && twice {
			err = fmt.Errorf("%w: the id is in this batch twice, first as item %d", ErrInvalid, at)
		}
		if err != nil {
			b.bad = append(b.bad, ItemError{Index: i, ID: id, Err: err})
			continue
		}
		first[id] = i
		b.items = append(b.items, item)
		b.places = append(b.places, i)
	}
	return b
}

// err returns the adapter's answer about the valid items together with the bad
// ones, all by their places in the caller's slice.
func (b batch[T]) err(answer error) error {
	items := b.bad
	var ofItems *BatchError
	switch {
	case errors.As(answer, &ofItems):
		items = slices.Clone(b.bad)
		for _, item := range ofItems.Items {
			if item.Index >= 0 && item.Index < len(b.places) {
				item.Index = b.places[item.Index]
			}
			items = append(items, item)
		}
		slices.SortStableFunc(items, func(x, y ItemError) int { return x.Index - y.Index })
	case answer != nil:
		return errors.Join(answer, NewBatchError(b.bad))
	}
	return NewBatchError(items)
}

var (
	errAnswerLost = errors.New("a try's answer was lost, and since then rows are locked")
	errPartly     = errors.New("the last try was not done, but an earlier one, or an earlier part of the call, may have been")
)

// partlyDone is the error of a call whose last try was not done, as err says, though something
// before it may have been. err isn't wrapped: it would speak of the whole call.
func partlyDone(err error) error { return fmt.Errorf("%w: %s", errPartly, err.Error()) }

// inPages calls f for runs of at most a thousand items, and of some megabytes by
// size (nil: items are small), so that each try of each run has the time-out to
// itself, with their places in items, and gathers the answers about items by these
// places. Items whose rows were locked are tried again by themselves: what took effect
// is not repeated, as it may have gone on since. It stops at the first run whose
// outcome stays unknown: also when rows are locked to the end and an earlier try,
// whose answer was lost, may have taken effect. Its error is ErrNotDone or
// ErrNotMigrated only where no run and no try has taken effect.
func inPages[T any](ctx context.Context, call repeater, items []T, size func(T) int, f func(ctx context.Context, run []T, places []int) error) error {
	var failed []ItemError
	for from, to := 0, 0; from < len(items); from = to {
		to = from + pageOf(items[from:], size)
		run := items[from:to]
		places := make([]int, len(run))
		for i := range places {
			places[i] = from + i
		}
		var locked []ItemError
		lost, partly := false, false // a try may have taken effect; one did, but for rows that were locked
		err := call.call(ctx, func(ctx context.Context) error {
			locked = nil
			err := f(ctx, run, places)
			var ofItems *BatchError
			if !answered(err) || !errors.As(err, &ofItems) {
				lost = lost || !answered(err) && !notDone(err)
				return err
			}
			var busy []T
			var busyPlaces []int
			for _, item := range ofItems.Items {
				at := item.Index
				item.Index = places[at]
				if errors.Is(item.Err, ErrBusy) {
					locked = append(locked, item)
					busy, busyPlaces = append(busy, run[at]), append(busyPlaces, item.Index)
				} else {
					failed = append(failed, item)
				}
			}
			partly = partly || len(ofItems.Items) < len(run)
			run, places = busy, busyPlaces
			return NewBatchError(locked)
		})
		if notDone(err) && (lost || partly || from > 0) {
			return partlyDone(err)
		}
		if err != nil && len(locked) == 0 || !answered(err) {
			return err
		}
		if lost && len(locked) > 0 {
			return fmt.Errorf("%w: %s", errAnswerLost, err.Error()) // not wrapped: that would be an answer
		}
		failed = append(failed, locked...)
	}
	slices.SortFunc(failed, func(a, b ItemError) int { return a.Index - b.Index })
	return NewBatchError(failed)
}

// Limits of what goes to a store in one call: a page of a long call, or short ones
// that share a statement.
const pageItems, pageBytes = 1000, 4 << 20

// pageOf returns how many of items are one page, at least the first.
func pageOf[T any](items []T, size func(T) int) int {
	n := min(pageItems, len(items))
	if size == nil {
		return n
	}
	bytes := size(items[0])
	for i := 1; i < n; i++ {
		if bytes += size(items[i]); bytes > pageBytes {
			return i
		}
	}
	return n
}

// itemErrors returns the failures that err names, by place; nil when it names
// none.
func itemErrors(err error) map[int]error {
	var ofItems *BatchError
	if !errors.As(err, &ofItems) {
		return nil
	}
	m := make(map[int]error, len(ofItems.Items))
	for _, item := range ofItems.Items {
		m[item.Index] = item.Err
	}
	return m
}

// failedItem tells whether an answer leaves item i without effect. An answer
// that names no items is about all of them.
func failedItem(answer error, i int) bool {
	if answer == nil {
		return false
	}
	var ofItems *BatchError
	if !errors.As(answer, &ofItems) {
		return true
	}
	_, failed := slices.BinarySearchFunc(ofItems.Items, i, func(item ItemError, i int) int { return item.Index - i })
	return failed
}

// accepted returns the index entries of the items that an answer doesn't name.
func accepted[T any](items []T, answer error, entry func(T) Entry) []Entry {
	entries := make([]Entry, 0, len(items))
	for i, item := range items {
		if !failedItem(answer, i) {
			entries = append(entries, entry(item))
		}
	}
	return entries
}

// within returns the entries that are due before end.
func within(entries []Entry, end time.Time) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return !e.Due.Before(end) })
}

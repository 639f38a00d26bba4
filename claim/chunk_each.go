package claim

import (
	"errors"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

// InChunks calls do for each run of items that Chunks yields, until one fails as a whole,
// and returns what the caller of the whole batch is to be told: nil, one *core.BatchError
// with the failed items of all runs at their places in items, or the error of the run
// that failed as a whole. Once a run has taken effect, such an error no longer wraps
// core.ErrNotDone or core.ErrNotMigrated, which would speak of the whole batch.
func InChunks[T any](items []T, count, bytes int, size func(T) int, do func(run []T) error) error {
	var failed []core.ItemError
	for start, run := range Chunks(items, count, bytes, size) {
		err := do(run)
		var batch *core.BatchError
		switch {
		case err == nil:
		case errors.As(err, &batch):
			for _, item := range batch.Items {
				item.Index += start
				failed = append(failed, item)
			}
		case start > 0 && (errors.Is(err, core.ErrNotDone) || errors.Is(err, core.ErrNotMigrated)):
			return &partly{fmt.Sprintf("after %d of %d items: %v", start, len(items), err), err}
		default:
			return err
		}
	}
	return core.NewBatchError(failed)
}

// partly is an error of a batch of which a part was done: it wraps what err does, but for
// core.ErrNotDone and core.ErrNotMigrated.
type partly struct {
	text string
	err  error
}

func (e *partly) Error() string { return e.text }
func (e *partly) Is(target error) bool {
	return target != core.ErrNotDone && target != core.ErrNotMigrated && errors.Is(e.err, target)
}
func (e *partly) As(target any) bool { return errors.As(e.err, target) }

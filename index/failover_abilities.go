package index

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.Watcher      = (*failover)(nil)
	_ core.Detector     = (*failover)(nil)
	_ core.SetupChecker = (*failover)(nil)
	_ core.Lister       = (*failover)(nil)
	_ core.Taker        = takingFailover{}
	_ core.Restorer     = restoringFailover{}
)

// Generation implements [core.Detector]: it changes with each switch, and with the
// primary's own while that is at work.
func (f *failover) Generation(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("index: failover: generation: %w", err)
	}
	f.mu.Lock()
	away, turn := f.away, f.switches
	since, cause := f.failedAt, f.cause
	f.mu.Unlock()
	if away {
		return fmt.Sprintf("backup %d", turn), fmt.Errorf("%w since %s: %w", ErrOnBackup, since.UTC().Format(time.RFC3339), cause)
	}
	d, ok := f.primary.(core.Detector)
	if !ok {
		return fmt.Sprintf("primary %d", turn), nil
	}
	own, err := d.Generation(ctx)
	if ctx.Err() != nil {
		return "", fmt.Errorf("index: failover: generation: %w", errors.Join(ctx.Err(), err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if own == "" {
		// Not told: the same as before, or not allowed to tell. There is a name all the
		// same, or the next switch would be none for who has never seen one. A primary
		// that is gone is found out by the calls that matter.
		own = f.told
	}
	f.told = own
	return fmt.Sprintf("primary %d %s", turn, own), err
}

// List implements [core.Lister]: it lists the part that is at work, and nothing
// where that one can't.
func (f *failover) List(ctx context.Context, after core.Entry, before time.Time, limit int) (entries []core.Entry, err error) {
	_, err = f.call(ctx, func(ctx context.Context, x core.TimeIndex) (err error) {
		if l, ok := x.(core.Lister); ok {
			entries, err = l.List(ctx, after, before, limit)
		}
		return err
	})
	return entries, err
}

// CheckSetup implements [core.SetupChecker]: both parts' warnings.
func (f *failover) CheckSetup(ctx context.Context) (warnings []string, err error) {
	for _, x := range []core.TimeIndex{f.primary, f.backup} {
		if c, ok := x.(core.SetupChecker); ok {
			some, partErr := c.CheckSetup(ctx)
			warnings = append(warnings, some...)
			err = errors.Join(err, partErr)
		}
	}
	return warnings, err
}

// The optional capabilities that the parts may lack: a type for each combination,
// as Go can't hide methods otherwise.
type (
	takingFailover    struct{ *failover }
	restoringFailover struct{ *failover }
	fullFailover      struct {
		*failover
		takingFailover
		restoringFailover
	}
)

func (f *failover) withCapabilities() core.TimeIndex {
	takes, restores := both[core.Taker](f), both[core.Restorer](f)
	switch {
	case takes && restores:
		return fullFailover{f, takingFailover{f}, restoringFailover{f}}
	case takes:
		return takingFailover{f}
	case restores:
		return restoringFailover{f}
	}
	return f
}

// both tells whether both parts have a capability.
func both[T any](f *failover) bool {
	_, p := f.primary.(T)
	_, b := f.backup.(T)
	return p && b
}

// Take implements [core.Taker].
func (f takingFailover) Take(ctx context.Context, now, until time.Time, limit int) (taken []core.ID, next time.Time, err error) {
	_, err = f.call(ctx, func(ctx context.Context, x core.TimeIndex) (err error) {
		taken, next, err = x.(core.Taker).Take(ctx, now, until, limit)
		if err == nil || !isFailure(ctx, err) {
			return err
		}
		if ids := standing(ctx, x, until, limit); len(ids) > 0 {
			taken, next, err = ids, now, nil // what comes next, it is to be asked again
		}
		return err
	})
	return taken, next, err
}

// standing returns what x lists at exactly t, where it is well enough to say. After a
// Take that failed these are what it took: then only its reply was lost, and x is no
// failing part.
func standing(ctx context.Context, x core.TimeIndex, t time.Time, limit int) []core.ID {
	l, ok := x.(core.Lister)
	if !ok {
		return nil
	}
	entries, err := l.List(ctx, core.Entry{Due: t}, t.Add(time.Millisecond), limit)
	if err != nil {
		return nil
	}
	ids := make([]core.ID, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
	}
	return ids
}

// AddMissing implements [core.Restorer].
func (f restoringFailover) AddMissing(ctx context.Context, entries []core.Entry) error {
	return f.write(ctx, func(ctx context.Context, x core.TimeIndex) error {
		return x.(core.Restorer).AddMissing(ctx, entries)
	})
}

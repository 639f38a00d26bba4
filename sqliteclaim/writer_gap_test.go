package sqliteclaim

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sqlite3 "modernc.org/sqlite/lib"
)

// begins is a session that notes when its transactions begin.
type begins struct {
	journal
	all []time.Time
}

func (b *begins) begin(ctx context.Context) error {
	b.all = append(b.all, time.Now())
	return b.journal.begin(ctx)
}

// work has callers write without pause for a minute, but for a rest after each
// transaction, and returns when these began.
func (b *begins) work(t *testing.T, patient bool, callers int, takes, rest time.Duration) []time.Time {
	w := newWriter(patient, func(context.Context) (session, error) { return b, nil })
	var all sync.WaitGroup
	for end := time.Now().Add(time.Minute); callers > 0; callers-- {
		all.Go(func() {
			for time.Now().Before(end) {
				require.NoError(t, w.write(t.Context(), 1, func(querier) error { time.Sleep(takes); return nil }))
				time.Sleep(rest)
			}
		})
	}
	all.Wait()
	return b.all
}

// longest returns the longest time without a look at the lock in each span between two
// gaps, but for the first two, in which it has to be known first, and the last.
func longest(all []time.Time) (pauses []time.Duration) {
	spans := map[int64]time.Duration{}
	span := func(at time.Time) int64 { return at.UnixNano() / int64(gapEvery) }
	for i := range all[1:] {
		n := span(all[i+1])
		spans[n] = max(spans[n], all[i+1].Sub(all[i]))
	}
	for n := span(all[0]) + 2; n < span(all[len(all)-1]); n++ {
		pauses = append(pauses, spans[n])
	}
	return pauses
}

func TestAWriterWithoutPauseLeavesGapsForOthers(t *testing.T) {
	for _, patient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const takes = 70 * time.Millisecond // a large one
			pauses := longest(new(begins).work(t, patient, 2, takes, 0))
			require.Greater(t, len(pauses), 8)
			for _, pause := range pauses {
				require.GreaterOrEqual(t, pause, takes+gapLength)
			}
		})
	}
}

// Nobody waits for a gap where others have chances enough anyhow: that would make tasks late.
func TestAWriterThatRestsNeedsNoGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := longest(new(begins).work(t, true, 1, 5*time.Millisecond, 5*time.Millisecond))
		require.Greater(t, len(pauses), 8)
		for _, pause := range pauses {
			require.Less(t, pause, gapLength)
		}
	})
}

// Who waits for the file's lock looks again and again, and must not find it in a gap.
func TestAWriterThatWaitsForTheLockLeavesGapsToo(t *testing.T) {
	busy := busyError(t)
	synctest.Test(t, func(t *testing.T) {
		b, looks := &begins{}, 0
		b.lock = func(context.Context) error {
			if looks++; looks%10 > 0 {
				return busy
			}
			return nil
		}
		pauses := longest(b.work(t, true, 2, time.Millisecond, 0))
		require.Greater(t, len(pauses), 8)
		for _, pause := range pauses {
			require.GreaterOrEqual(t, pause, gapLength)
		}
	})
}

// busyError is the driver's error for a file that is locked.
func busyError(t *testing.T) (err error) {
	path := "file:" + filepath.Join(t.TempDir(), "busy.db")
	for range 2 {
		db, openErr := sql.Open("sqlite", path)
		require.NoError(t, openErr)
		defer func() { require.NoError(t, db.Close()) }()
		_, err = db.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	}
	require.Equal(t, sqlite3.SQLITE_BUSY, code(err))
	return err
}

func TestAGapEndsWithItsCallersContext(t *testing.T) {
	w := newWriter(true, func(context.Context) (session, error) { return &journal{}, nil })
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		time.Sleep(gapEvery - time.Duration(now.UnixNano()%int64(gapEvery)))
		w.gaps.since, w.gaps.worked = now, time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), gapLength/2)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, w.write(ctx, 1, func(querier) error { return nil }), context.DeadlineExceeded)
		require.Equal(t, gapLength/2, time.Since(began))
		require.NoError(t, w.write(t.Context(), 1, func(querier) error { return nil }))
		require.Equal(t, gapLength, time.Since(began))
	})
}

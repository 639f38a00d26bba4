package sqliteclaim

import (
	"sync/atomic"
	"time"
)

// tokens are what new rows of this process's stores begin with, whatever their files.
//
// An id may be used again after its row was deleted, and its tokens must go on rising,
// whoever inserts it. So the first one comes from the clock of the host, which all
// users of the file share, read while the file's write lock is held: later insertions
// have later readings. What the clock can't tell apart, or takes back, the counter
// makes up for, as far as this process has seen it.
var tokens counter

// counter rises with each number that it gives.
type counter struct{ last atomic.Int64 }

// next returns a number above all that were given or seen: now, in microseconds, if
// that is one.
func (c *counter) next(now time.Time) int64 {
	for {
		last := c.last.Load()
		n := max(last+1, now.UnixMicro())
		if c.last.CompareAndSwap(last, n) {
			return n
		}
	}
}

// saw keeps later numbers above n.
func (c *counter) saw(n int64) {
	for last := c.last.Load(); n > last; last = c.last.Load() {
		if c.last.CompareAndSwap(last, n) {
			return
		}
	}
}

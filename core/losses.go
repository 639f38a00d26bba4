package core

import (
	"context"
	"log/slog"
	"time"
)

// lossWatch is what a scheduler has seen of a Detector's generations.
type lossWatch struct {
	last  string
	quiet time.Duration // monotonic: until then a change is no warning of its own
}

// lossQuiet is the least time between two warnings of losses: an index that tells of
// one each second would fill the log.
const lossQuiet = time.Minute

// generation asks an index that is a Detector for its generation, and notes its
// health. "" where it can't tell, or ctx is done.
func (e *engine) generation(ctx context.Context) string {
	d, ok := e.idx.(Detector)
	if !ok {
		return ""
	}
	var name string
	err := e.index.once(ctx, func(ctx context.Context) (err error) {
		name, err = d.Generation(ctx)
		return err
	})
	if ctx.Err() != nil {
		return ""
	}
	e.health.index("generation", err)
	return name
}

// lookForLosses asks the index for its generation and has all waiting rows read again
// when it is another one than before.
func (e *engine) lookForLosses(ctx context.Context, w *lossWatch) {
	if e.indexFailed() {
		return // dispatch learns when it answers again; a hanging call here would put off the next sweep
	}
	now := e.generation(ctx)
	if now == "" || now == w.last {
		return
	}
	if w.last != "" { // the first horizon sweep reads everything anyhow
		level := slog.LevelDebug
		if at := e.clock.mono(); at >= w.quiet {
			level, w.quiet = slog.LevelWarn, at+lossQuiet
		}
		e.log.Log(ctx, level, "dueclaim: the index may have lost entries; reading all waiting tasks again", "was", w.last, "now", now)
		e.obs.indexLost(w.last, now)
		poke(e.lost)
	}
	w.last = now
}

// lossesAtOnce is how many losses that come one upon the other are each followed by a
// reading at once.
const lossesAtOnce = 4

// lossStorm spaces out the readings that losses cause, where these don't end. All its
// times are monotonic.
type lossStorm struct {
	calm  time.Duration // so long without a loss ends a storm
	pause backoff
	n     int           // losses of this storm
	open  bool          // a reading because of a loss is going on
	ended time.Duration // when the last of those ended
}

// loss notes a loss and returns how long the reading for it is to wait.
func (s *lossStorm) loss(now time.Duration) time.Duration {
	if now-s.ended > s.calm {
		s.n = 0
		s.pause.ok()
	}
	s.open = true
	if s.n++; s.n <= lossesAtOnce {
		return 0
	}
	return s.pause.failed()
}

// read notes the end of a reading.
func (s *lossStorm) read(now time.Duration) {
	if s.open {
		s.open, s.ended = false, now
	}
}

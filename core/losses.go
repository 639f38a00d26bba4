package core

import "context"

// lossWatch is what a scheduler has seen of a Detector's generations.
type lossWatch struct{ last string }

// lookForLosses asks an index that is a Detector for its generation and has all
// waiting rows read again when it is another one than before.
func (e *engine) lookForLosses(ctx context.Context, w *lossWatch) {
	d, ok := e.idx.(Detector)
	if !ok {
		return
	}
	e.mu.Lock()
	failed := e.idxFailed
	e.mu.Unlock()
	if failed {
		return // dispatch learns when it answers again; a hanging call here would put off the next sweep
	}
	var now string
	err := e.index.once(ctx, func(ctx context.Context) (err error) {
		now, err = d.Generation(ctx)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	e.health.index("generation", err)
	if now == "" || now == w.last {
		return
	}
	if w.last != "" { // the first horizon sweep reads everything anyhow
		e.log.Warn("dueclaim: the index may have lost entries; reading all waiting tasks again")
		e.obs.indexLost(w.last, now)
		poke(e.lost)
	}
	w.last = now
}

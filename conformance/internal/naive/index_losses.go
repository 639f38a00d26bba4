package naive

import (
	"context"
	"fmt"
)

// Lose loses all entries, as a flush does.
func (x *Index) Lose() {
	x.set(func() {
		clear(x.data.due)
		if x.bug != "generation outlives a loss" {
			x.data.lives++
		}
		x.data.seen = false
	})
}

// Generation implements core.Detector.
func (x *Index) Generation(ctx context.Context) (string, error) {
	if x.bug == "generation ignores ctx" {
		ctx = context.WithoutCancel(ctx)
	}
	if err := x.enter(ctx, 1); err != nil {
		return "", unless(x.bug == "broken generation succeeds", err)
	}
	name := ""
	x.set(func() {
		switch {
		case x.bug == "generation counts calls":
			x.data.lives++
		case x.bug == "generation counts entries":
			name = fmt.Sprint(len(x.data.due), " ")
		case x.bug == "generation changes as the index is filled" && !x.data.seen && len(x.data.due) > 0:
			x.data.seen = true
			x.data.lives++
		}
		name += fmt.Sprint("life ", x.data.lives)
	})
	return name, nil
}

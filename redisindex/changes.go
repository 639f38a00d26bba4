package redisindex

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Add implements [core.TimeIndex]. 256 entries go into one script, which
// publishes when one of them is earlier than all that were there; up to 2,048 go
// out in one round trip.
func (x *Index) Add(ctx context.Context, entries []core.Entry) error {
	if err := ctx.Err(); err != nil {
		return x.wrap("add", err)
	}
	var calls [][]any
	for chunk := range slices.Chunk(entries, scriptItems) {
		args := make([]any, 2, 2+2*len(chunk))
		earliest := chunk[0].Due
		for _, e := range chunk {
			if e.Due.Before(earliest) {
				earliest = e.Due
			}
			args = append(args, score(e.Due), string(e.ID))
		}
		args[0], args[1] = x.names.wake, score(earliest)
		calls = append(calls, args)
	}
	_, err := x.runAll(ctx, x.scripts.add, calls)
	return x.wrap("add", err)
}

// AddMissing implements [core.Restorer], 256 entries a script, 2,048 a round trip.
// Where all are there already nothing is written.
func (x *Index) AddMissing(ctx context.Context, entries []core.Entry) error {
	if err := ctx.Err(); err != nil {
		return x.wrap("add missing", err)
	}
	var calls [][]any
	for chunk := range slices.Chunk(entries, scriptItems) {
		n := len(chunk)
		args := make([]any, 1+2*n)
		args[0] = x.names.wake
		for i, e := range chunk {
			args[1+i], args[1+n+i] = string(e.ID), score(e.Due)
		}
		calls = append(calls, args)
	}
	_, err := x.runAll(ctx, x.scripts.addMissing, calls)
	return x.wrap("add missing", err)
}

// Move implements [core.TimeIndex], 256 moves a script, 2,048 a round trip.
func (x *Index) Move(ctx context.Context, moves []core.Move) error {
	if err := ctx.Err(); err != nil {
		return x.wrap("move", err)
	}
	var calls [][]any
	for chunk := range slices.Chunk(moves, scriptItems) {
		n := len(chunk)
		args := make([]any, 1+3*n)
		args[0] = x.names.wake
		for i, m := range chunk {
			args[1+i], args[1+n+i], args[1+2*n+i] = string(m.ID), score(m.From), score(m.To)
		}
		calls = append(calls, args)
	}
	_, err := x.runAll(ctx, x.scripts.move, calls)
	return x.wrap("move", err)
}

// Remove implements [core.TimeIndex], 256 entries a script, 2,048 a round trip, and
// one more where it took the last entry.
func (x *Index) Remove(ctx context.Context, entries []core.Entry) error {
	if err := ctx.Err(); err != nil {
		return x.wrap("remove", err)
	}
	var calls [][]any
	for chunk := range slices.Chunk(entries, scriptItems) {
		n := len(chunk)
		args := make([]any, 2*n)
		for i, e := range chunk {
			args[i], args[n+i] = string(e.ID), score(e.Due)
			if e.Due.IsZero() {
				args[n+i] = "" // wherever it stands
			}
		}
		calls = append(calls, args)
	}
	last, err := x.runAll(ctx, x.scripts.remove, calls)
	if err != nil {
		return x.wrap("remove", err)
	}
	if last == int64(1) {
		x.noteEmptied(ctx)
	}
	return nil
}

// score is t in whole milliseconds, which a float64 holds exactly, in the digits
// that Redis gets: Lua would write a number of this size with rounding.
func score(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

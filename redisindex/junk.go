package redisindex

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/dueclaim/dueclaim/core"
)

// Bounds of what is done about junk, so that even a set full of it costs each
// call little.
const (
	junkAtOnce   = 16          // members with wrong scores that one call takes from each end
	junkLastRank = "-1001"     // keeps a thousand members, those with the highest scores
	junkBytes    = 4096        // longer members are dropped
	junkChunk    = scriptItems // members that one script sets aside
)

// junk is a member that is no entry: its score now (after a Take: until), and
// the one that it was found with.
type junk struct{ member, now, found string }

func wrongScores(wrong []scored) []junk {
	var found []junk
	for _, s := range wrong {
		found = append(found, junk{member: s.member, now: s.score, found: s.score})
	}
	return found
}

// oddIDs picks those of the places that hold no valid id; odd is a flat list of
// places (from 1) and scores.
func oddIDs(ids []string, odd []any, until string) ([]junk, error) {
	var found []junk
	for pair := range slices.Chunk(odd, 2) {
		place, ok := pair[0].(int64)
		if !ok || place < 1 || place > int64(len(ids)) || len(pair) != 2 {
			return nil, errReply
		}
		was, ok := pair[1].(string)
		if !ok {
			return nil, errReply
		}
		if member := ids[place-1]; core.ID(member).Check() != nil {
			found = append(found, junk{member: member, now: until, found: was})
		}
	}
	return found, nil
}

// setAside moves what was found into the junk set, where its score still is what
// it was, and reports it. An error is left for the next call that comes across
// the same: junk must never fail a call that went well.
func (x *Index) setAside(ctx context.Context, found []junk) {
	for chunk := range slices.Chunk(found, junkChunk) {
		args := []any{junkLastRank, junkBytes}
		for _, j := range chunk {
			args = append(args, j.member, j.now, j.found)
		}
		reply, err := x.run(ctx, x.scripts.setAside, true, []string{x.names.due, x.names.junk}, args)
		if err != nil {
			return
		}
		places, err := list(reply, -1)
		if err != nil || x.onJunk == nil {
			continue
		}
		for _, place := range places {
			if i, ok := place.(int64); ok && i >= 1 && i <= int64(len(chunk)) {
				x.tellJunk(chunk[i-1].member, parseScore(chunk[i-1].found))
			}
		}
	}
}

// tellJunk calls OnJunk, whose panic must not end the process. The standard error is
// what is left to tell of it: an index has no log.
func (x *Index) tellJunk(member string, score float64) {
	defer func() {
		if v := recover(); v != nil {
			x.junkPanic.Do(func() { fmt.Fprintf(os.Stderr, "redisindex: OnJunk panicked: %v\n%s\n", v, debug.Stack()) })
		}
	}()
	x.onJunk(member, score)
}

func parseScore(score string) float64 {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

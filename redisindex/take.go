package redisindex

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/core"
)

// Take implements [core.Taker]: one atomic script for each 512 ids, in one round
// trip each. The client never repeats it by itself.
func (x *Index) Take(ctx context.Context, now, until time.Time, limit int) (taken []core.ID, next time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, x.wrap("take", err)
	}
	var found []junk
	steps := 0
	// Wrong scores never stand before entries: to look for them now and then is
	// enough, and an idle scheduler costs Redis half as much.
	look := 0
	if x.takes.Add(1)%8 == 1 {
		look = junkAtOnce
	}
	for steps == 0 || len(taken) < limit {
		steps++
		count := min(max(limit-len(taken), 0), takeItems)
		step, err := x.takeStep(ctx, now, until, count, look)
		if err != nil {
			return taken, time.Time{}, x.wrap("take", err)
		}
		taken = append(taken, step.ids...)
		next = step.next
		found = append(found, step.junk...)
		if step.members < count || count == 0 {
			break
		}
	}
	x.setAside(ctx, found)
	// Each script knows what itself took. With several, what remains first may be
	// an id that an earlier one of this call moved to until.
	if steps > 1 && next.Equal(until) {
		if next, err = x.nextOfOthers(ctx, until, taken); err != nil {
			return taken, time.Time{}, x.wrap("take", err)
		}
	}
	return taken, next, nil
}

// taking is what one script took.
type taking struct {
	ids     []core.ID
	members int // ids and junk
	next    time.Time
	junk    []junk
}

func (x *Index) takeStep(ctx context.Context, now, until time.Time, count, look int) (taking, error) {
	args := []any{score(now), score(until), count, look}
	reply, err := x.run(ctx, x.scripts.take, false, []string{x.names.due}, args)
	if err != nil {
		return taking{}, err
	}
	parts, err := list(reply, 4)
	if err != nil {
		return taking{}, err
	}
	members, err := texts(parts[0])
	if err != nil {
		return taking{}, err
	}
	step := taking{members: len(members)}
	if head, ok := parts[1].(string); ok && head != "" {
		if step.next, err = parseDue(head); err != nil {
			return taking{}, err
		}
	}
	odd, err := list(parts[2], -1)
	if err != nil {
		return taking{}, err
	}
	wrong, err := scoreds(parts[3])
	if err != nil {
		return taking{}, err
	}
	bad, err := oddIDs(members, odd, score(until))
	if err != nil {
		return taking{}, err
	}
	step.junk = append(bad, wrongScores(wrong)...)
	step.ids = make([]core.ID, 0, len(members))
	for _, member := range members {
		// bad has the members in this order.
		if len(bad) > 0 && bad[0].member == member {
			bad = bad[1:]
			continue
		}
		step.ids = append(step.ids, core.ID(member))
	}
	return step, nil
}

// nextOfOthers returns the earliest due time from until on of an entry that is
// not in ours.
func (x *Index) nextOfOthers(ctx context.Context, until time.Time, ours []core.ID) (time.Time, error) {
	return within(ctx, func() (time.Time, error) {
		at := score(until)
		var same *redis.StringSliceCmd
		var after *redis.ZSliceCmd
		_, err := x.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			same = p.ZRangeByScore(ctx, x.names.due, &redis.ZRangeBy{Min: at, Max: at, Count: int64(len(ours)) + 1})
			after = p.ZRangeByScoreWithScores(ctx, x.names.due, &redis.ZRangeBy{Min: "(" + at, Max: lastScore, Count: 1})
			return nil
		})
		if err != nil {
			return time.Time{}, err
		}
		mine := make(map[string]struct{}, len(ours))
		for _, id := range ours {
			mine[string(id)] = struct{}{}
		}
		for _, member := range same.Val() {
			if _, ok := mine[member]; !ok {
				return until, nil
			}
		}
		if z := after.Val(); len(z) > 0 {
			return parseDue(strconv.FormatFloat(z[0].Score, 'f', -1, 64))
		}
		return time.Time{}, nil
	})
}

// lastScore is the last millisecond of the year 9999; the scripts have it too.
const lastScore = "253402300799999"

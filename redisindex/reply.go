package redisindex

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// errReply is an answer that is not what the script returns: a proxy or a
// server that speaks another dialect.
var errReply = errors.New("unexpected reply")

// scored is a member with its score as Redis wrote it.
type scored struct{ member, score string }

func list(reply any, length int) ([]any, error) {
	items, ok := reply.([]any)
	if !ok || length >= 0 && len(items) != length {
		return nil, fmt.Errorf("%w: got %T of another shape than the script's", errReply, reply)
	}
	return items, nil
}

func texts(reply any) ([]string, error) {
	items, err := list(reply, -1)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("%w: got %T, want a string", errReply, item)
		}
		texts[i] = text
	}
	return texts, nil
}

func scoreds(reply any) ([]scored, error) {
	flat, err := texts(reply)
	if err != nil {
		return nil, err
	}
	if len(flat)%2 != 0 {
		return nil, fmt.Errorf("%w: got %d items, want pairs", errReply, len(flat))
	}
	pairs := make([]scored, len(flat)/2)
	for i := range pairs {
		pairs[i] = scored{flat[2*i], flat[2*i+1]}
	}
	return pairs, nil
}

// parseDue reads a score that is between 1970 and 9999. A fraction of a
// millisecond, which only someone else writes, is rounded up, as in the scripts.
func parseDue(score string) (time.Time, error) {
	if ms, err := strconv.ParseInt(score, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	f, err := strconv.ParseFloat(score, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return time.Time{}, fmt.Errorf("%w: score %q", errReply, score)
	}
	return time.UnixMilli(int64(math.Ceil(f))).UTC(), nil
}

package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// stamp shows a zone that isn't UTC and a fraction that wasn't asked for.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "zero"
	}
	return t.Format(time.RFC3339Nano)
}

// name is an id as a text shows it.
func name(id core.ID) string {
	if len(id) > 40 {
		return fmt.Sprintf("%+q…(%d bytes)%+q", string(id[:4]), len(id), string(id[len(id)-4:]))
	}
	return fmt.Sprintf("%+q", string(id))
}

func list[T any](items []T, show func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = show(item)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func showEntry(e core.Entry) string { return name(e.ID) + " due " + stamp(e.Due) }

func showMove(m core.Move) string {
	return fmt.Sprintf("%s from %s to %s", name(m.ID), stamp(m.From), stamp(m.To))
}

func showTask(t core.Task) string {
	return fmt.Sprintf("%s due %s kind %q payload %q meta %q max %d", name(t.ID), stamp(t.Due), t.Kind, t.Payload, t.Meta, t.MaxAttempts)
}

func showGrant(g core.Grant) string {
	return fmt.Sprintf("%s token %d of %s", name(g.ID), g.Token, g.Holder)
}

func showLease(l core.Lease) string {
	return fmt.Sprintf("holder %s, now %s, due by %s, until %s", l.Holder, stamp(l.Now), stamp(l.DueBy), stamp(l.Until))
}

func showSettlement(s core.Settlement) string {
	text := fmt.Sprintf("%s as %s", showGrant(s.Grant), s.Outcome)
	if s.Outcome == core.Retry || s.Outcome == core.Released {
		text += " due " + stamp(s.Due)
	}
	return text
}

// showClaimed is a verdict without the token, which each backend counts its way.
func showClaimed(c core.Claimed) string {
	text := name(c.ID) + " " + c.Verdict.String()
	switch c.Verdict {
	case core.Granted:
		return fmt.Sprintf("%s until %s to %q; grant of %s; attempt %d, crashes %d; task %s",
			text, stamp(c.At), c.Grant.Holder, name(c.Grant.ID), c.Attempt, c.Crashes, showTask(c.Task))
	case core.Held, core.NotDue:
		return text + " at " + stamp(c.At)
	default: // of these verdicts the contract gives no At
		return text
	}
}

func showID(id core.ID) string    { return name(id) }
func showFate(f core.Fate) string { return f.String() }
func idOf(e core.Entry) core.ID   { return e.ID }
func showDone(ctx context.Context) string {
	if ctx.Err() != nil {
		return " with a ctx that is done"
	}
	return ""
}

var sentinels = []error{
	core.ErrExists, core.ErrLeaseLost, core.ErrNotPending, core.ErrMoved, core.ErrInvalid, core.ErrBusy, core.ErrNotMigrated,
}

// sentinel is the item's failure as the contract names it.
func sentinel(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return fmt.Sprint(err)
}

// showItems lists an answer's failed items. ok is false where err is neither nil
// nor a *core.BatchError.
func showItems(err error) (items []core.ItemError, ok bool) {
	var batch *core.BatchError
	if errors.As(err, &batch) {
		return batch.Items, true
	}
	return nil, err == nil
}

func showItem(x core.ItemError) string {
	return fmt.Sprintf("item %d %s: %s", x.Index, name(x.ID), sentinel(x.Err))
}

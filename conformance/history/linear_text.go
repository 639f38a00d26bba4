package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dueclaim/dueclaim/core"
)

// after shows an instant of a concurrent history.
func after(t time.Time) string {
	if t.IsZero() {
		return "any"
	}
	return "+" + t.Sub(present).String()
}

func showOp(in op) string {
	switch in.kind {
	case inserts:
		return fmt.Sprintf("Insert(call %s, now %d ms, due %s)", in.call, in.now.UnixMilli(), after(in.due))
	case claims:
		return fmt.Sprintf("Claim(holder %s, now and due by %s, until %s)", in.lease.Holder, after(in.lease.Now), after(in.lease.Until))
	case extends:
		return fmt.Sprintf("Extend(token %d of %s, until %s)", in.grant.Token, in.grant.Holder, after(in.until))
	case settles:
		text := fmt.Sprintf("Settle(token %d of %s as %s", in.grant.Token, in.grant.Holder, in.outcome)
		if !in.due.IsZero() {
			text += " due " + after(in.due)
		}
		return text + ")"
	case cancels:
		return fmt.Sprintf("Cancel(now %s)", after(in.now))
	case reschedules:
		return fmt.Sprintf("Reschedule(from %s, to %s)", after(in.from), after(in.due))
	default:
		return fmt.Sprintf("Waiting(now %s)", after(in.now))
	}
}

func showAnswer(in op, out answer) string {
	switch {
	case in.early:
		return "may take effect before the answer below is read"
	case out.unknown:
		return "unknown"
	case out.refused != "":
		return out.refused
	case in.kind == claims && out.verdict == core.Granted:
		return fmt.Sprintf("Granted token %d until %s, attempt %d, crashes %d, Task.Due %s",
			out.token, after(out.at), out.attempt, out.crashes, after(out.planned))
	case in.kind == claims && !out.at.IsZero():
		return out.verdict.String() + " at " + after(out.at)
	case in.kind == claims:
		return out.verdict.String()
	case in.kind == cancels:
		return out.fate.String()
	case in.kind == waits && out.waits:
		return "waits, due " + after(out.at)
	case in.kind == waits:
		return "not there"
	default:
		return "ok"
	}
}

func showState(s state) string {
	if s.status == absent {
		return "absent"
	}
	text := fmt.Sprintf("%s due %s, Task.Due %s, made by call %s, token %d", s.status, after(s.due), after(s.planned), s.call, s.token)
	if s.unsure {
		text += " or more"
	}
	if s.holder != "" {
		text += fmt.Sprintf(" of %s until %s", s.holder, after(s.until))
	}
	return text + fmt.Sprintf(", attempts %d, crashes %d", s.attempts, s.crashes)
}

// explain lists one id's history by the order of its calls. Beside each op stands
// its place in the longest order that could be found, none for those for which no
// place was left.
func explain(m porcupine.Model, id core.ID, history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var best []int
	for _, order := range slices.Concat(info.PartialLinearizations()...) {
		if len(order) > len(best) {
			best = order
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no order of the calls explains all answers about id %s; the longest one found explains %d of %d:\n", name(id), len(best), len(history))
	s := m.Init()
	for _, i := range best {
		_, s = m.Step(s, history[i].Input, history[i].Output)
	}
	lines := make([]int, len(history))
	for i := range lines {
		lines[i] = i
	}
	slices.SortStableFunc(lines, func(i, j int) int { return cmp.Compare(history[i].Call, history[j].Call) })
	for _, i := range lines {
		o := history[i]
		place := "  ?"
		if at := slices.Index(best, i); at >= 0 {
			place = fmt.Sprintf("%3d", at+1)
		}
		until := fmt.Sprintf("%4d", o.Return)
		if o.Output.(answer).unknown && !o.Input.(op).early {
			until = "   …"
		}
		fmt.Fprintf(&b, "  %s  [%4d,%s] client %d: %s\n", place, o.Call, until, o.ClientId, m.DescribeOperation(o.Input, o.Output))
	}
	fmt.Fprintf(&b, "after these the task is %s", m.DescribeState(s))
	return b.String()
}

package pgclaim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// triggers judges the user's code that runs in our statements.
func (v *verifier) triggers() {
	written := map[int]bool{}
	for _, p := range v.def.Columns() {
		if c, ok := v.rel.column(p.Name); ok && p.Written {
			written[c.Num] = true
		}
	}
	for _, g := range v.rel.Triggers {
		fires := len(g.Columns) == 0
		for _, num := range g.Columns {
			fires = fires || written[num]
		}
		if fires {
			v.trigger(g)
		}
	}
	for _, rule := range v.rel.Rules {
		v.warn("trigger", "", fmt.Sprintf("rule %s rewrites UPDATE statements on the table: what a claim changed can't be told for sure", quote(rule)), fmt.Sprintf("DROP RULE %s ON %s, in favour of a trigger", quote(rule), v.name))
	}
}

func (v *verifier) trigger(g trigger) {
	if v.def.Mode() == claim.Transition { // the step is one UPDATE, like the user's own
		v.advise("trigger", "", fmt.Sprintf("the step from pending to done fires trigger %s", quote(g.Name)), "")
		return
	}
	broken := false
	for _, name := range sqltable.Fences(v.def) {
		touch := sqltable.TriggerTouch(g.Source, v.def.Name[strings.LastIndexByte(v.def.Name, '.')+1:], name)
		// Such as moddatetime(updated_at), whose function is written in C.
		if touch == sqltable.Writes || slices.Contains(strings.Split(g.Arguments, `\000`), name) {
			broken = true
			v.fault("trigger", name, fmt.Sprintf("trigger %s sets the column in each UPDATE, and what a claim writes there is what proves a grant: no row could be claimed and completed", quote(g.Name)),
				fmt.Sprintf("have it leave alone what the statement itself wrote (IF NEW.%[1]s IS NOT DISTINCT FROM OLD.%[1]s THEN …), or leave State.Processing out (mode Transition)", quote(name)))
		}
	}
	if broken {
		return
	}
	reason := fmt.Sprintf("trigger %s runs in each claim, heartbeat and settlement; an error of it fails the whole batch", quote(g.Name))
	if g.Before {
		reason += "; a row that it doesn't let change is refused"
	}
	if v.def.Mode() == claim.StatusUpdated {
		reason += fmt.Sprintf("; where it changes %s, no row can be claimed, as that is the fence", v.def.Updated.Name)
	}
	v.warn("trigger", "", reason, "see what it does; CREATE TRIGGER … UPDATE OF or WHEN can leave our columns out")
}

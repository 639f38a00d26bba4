package mysqlclaim

import (
	"fmt"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// triggers judges the user's code that runs in our statements.
func (v *verifier) triggers() {
	def := v.t.def
	for _, g := range v.c.triggers {
		if def.Mode() == claim.Transition { // the step is one UPDATE, like the user's own
			v.advise("trigger", "", "the step from pending to done fires "+g.name, "")
			continue
		}
		broken := false
		for _, name := range sqltable.Fences(def) {
			if sqltable.TriggerTouch(g.source, v.c.name, name) == sqltable.Writes {
				broken = true
				v.fault("trigger", name, fmt.Sprintf("trigger %s sets it in each UPDATE, and what a claim writes there is what proves a grant: no row could be claimed and completed", g.name),
					fmt.Sprintf("have it leave alone what the statement itself wrote (IF NEW.%[1]s <=> OLD.%[1]s THEN SET NEW.%[1]s = …), use ON UPDATE CURRENT_TIMESTAMP instead, or leave State.Processing out (mode Transition)", name))
			}
		}
		if !broken {
			v.warn("trigger", "", "an UPDATE fires "+g.name+": what a trigger does to the mapped columns, or how long it takes, is part of every claim and heartbeat",
				"make sure that it leaves the mapped columns alone and is quick")
		}
	}
	if v.c.triggersHidden {
		v.Add(claim.Info, "trigger-unseen", "", "without the TRIGGER privilege this user doesn't see whether the table has triggers", "")
	}
}

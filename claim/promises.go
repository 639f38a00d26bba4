package claim

import (
	"fmt"
	"strings"
)

// Promises returns what the table's mode promises and what it doesn't, as
// findings of severity Info (kept) and Advice (weaker than the managed table).
// Verify's list ends with them.
func (t Table) Promises() Findings {
	var fs Findings
	mode := t.Mode()
	keeps := func(code, reason string) { fs.Add(Info, "promise-"+code, "", mode.String()+": "+reason, "") }
	weaker := func(code, reason, mend string) { fs.Add(Advice, "weaker-"+code, "", mode.String()+": "+reason, mend) }
	const toFull = "map Token, Holder and Lease: Suggest prints the ALTER TABLE"

	switch mode {
	case Full:
		keeps("one-holder", "one holder for each id and token; the token rises with every grant; an older holder's late write is refused")
		keeps("lost-reply", "a claim or settlement whose reply was lost is recognised when it is repeated")
		if !t.Due.Written() {
			weaker("retry-hidden", "a row that backs off is held until then: sweeps see it when that is over", "")
		} else {
			weaker("release-due", "a row that is given back (a shutdown, an unknown kind) gets a new due time, from which its lateness counts then", "")
		}
		keeps("retry-dated", "a retry's due time is in the row; the index may be lost at any time")
	case StatusUpdated:
		keeps("one-holder", "one holder at a time; the exact "+t.Updated.Name+" that a claim or heartbeat wrote is the fence, and rises with each")
		weaker("fence", fmt.Sprintf("a row is claimed again at the earliest %s after its last change; statements of the user's that write %s end the grant; one that also puts the row back to pending must not set it back, nor come in the second in which a heartbeat lost its reply, else the next claim may write the same fence", t.Updated.Step(), t.Updated.Name), toFull)
		if t.Dated() {
			keeps("retry-dated", "a retry's due time is in the row; the index may be lost at any time")
		} else {
			weaker("retry-undated", "a retry goes back to pending and only the index holds its back-off; sweeps add overdue rows to the index a lease later and never claim", toFull)
		}
		weaker("lost-reply", "a claim whose reply was lost can't be told from a lost race: the row waits for the end of its lease", toFull)
		weaker("repeat", "a settlement that is repeated a minute after its success, or through another Table, answers core.ErrLeaseLost", toFull)
	case Transition:
		keeps("effects-once", "the step and the writes in its transaction happen exactly once")
		weaker("no-lease", "nothing marks a row as taken: an index that all workers share keeps them apart (with a heap a process, each starts every row), and a handler may be started more than once", "give the table a state for processing")
		weaker("retry-undated", "a retry is not in the row; sweeps add overdue rows to the index a lease later and never claim", "give the table a state for processing")
	}
	if t.NoAhead() {
		mend := "map Due.Column, if dueclaim may write the due time"
		if mode == Transition {
			mend = ""
		}
		weaker("not-ahead", "a grant can't tell a row's back-off, so nothing is claimed ahead of its time: tasks start a millisecond or two late, and never early", mend)
	}
	if mode != Transition && t.Attempts == "" {
		weaker("attempts", "no column counts attempts: each process counts failures in its memory", "map Attempts")
	}
	if mode != Transition && t.Crashes == "" {
		weaker("crashes", "no column counts crashes: a row that kills its worker circles for ever", "map Crashes")
	}
	if t.State.Dead.IsZero() {
		weaker("dead", "no state means dead: a row that should be given up is tried again and again", "add a state and map State.Dead")
	}
	fs.Add(Info, "writes", "", fmt.Sprintf("%s: claims, heartbeats and settlements write %s, and no other column", mode, t.written()), "")
	return fs
}

// written lists the columns that are written, for people.
func (t Table) written() string {
	var names []string
	for _, c := range t.Columns() {
		switch {
		case !c.Written:
		case c.Role == "Due.Column":
			names = append(names, c.Name+" (at a retry and a release)")
		default:
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

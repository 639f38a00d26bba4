package seededbugs

// The rules that the in-memory store and the model of the protocol share, and what
// all stores make of a row that they read back.
func protocolBugs() []bug {
	const transitions, row = "claim/transition.go", "claim/row.go"
	return []bug{
		{
			name: "settle-by-anybody",
			harm: "a worker that lost its task long ago ends it under the hands of the one who has it now",
			file: transitions,
			old:  `if r.Status != Running || !r.heldBy(s.Grant) {`,
			new:  `if r.Status != Running {`,
			by:   []check{searched, onMemory, simulated},
		},
		{
			name: "claim-of-a-live-lease",
			harm: "two workers run the same task at the same time",
			file: transitions,
			old:  `expired := r.Status == Running && r.LeaseUntil < lease.Now.UnixMilli()`,
			new:  `expired := r.Status == Running`,
			by:   []check{searched, onMemory, simulated},
		},
		{
			name: "token-that-stays",
			harm: "a fenced resource can't tell the new holder's writes from the old one's",
			file: transitions,
			old:  "\tr.Token++\n",
			new:  "\tr.Token = max(r.Token, 1)\n",
			by:   []check{searched, onMemory, simulated},
		},
		{
			name: "extend-by-anybody",
			harm: "a worker that lost its task goes on with it for ever, as its heartbeats succeed",
			file: transitions,
			old:  `if r.Status != Running || !r.heldBy(g) {`,
			new:  `if r.Status != Running {`,
			by:   []check{onMemory, simulated},
		},
		{
			name: "extension-that-shortens",
			harm: "a heartbeat that arrives late ends a lease that its holder believes in",
			file: transitions,
			old:  `r.LeaseUntil = max(r.LeaseUntil, ceil(until))`,
			new:  `r.LeaseUntil = ceil(until)`,
			by:   []check{onMemory, simulated},
		},
		{
			name: "crash-that-is-a-failure",
			harm: "deploys and crashes use up the attempts of tasks that never failed",
			file: transitions,
			old:  "\t\tr.Crashes++\n",
			new:  "\t\tr.Crashes += 0\n",
			by:   []check{onMemory, simulated},
		},
		{
			name: "late-completion-is-answered-yes",
			harm: "a handler that was taken over is told that its result counts",
			file: row,
			old:  `case !r.heldBy(g) || r.Status == Cancelled:`,
			new:  `case r.Status == Cancelled:`,
			by:   []check{searched, onMemory, simulated, stops},
		},
		{
			name: "repeated-insert-is-a-stranger",
			harm: "a task whose acknowledgement got lost is reported as somebody else's, and its caller does something else instead",
			file: row,
			old:  `case r.CallID == call.ID:`,
			new:  `case r.CallID == call.ID && !r.Status.Live():`,
			by:   []check{onMemory, cutCalls},
		},
		{
			name: "repeated-insert-runs-again",
			harm: "a task that is done runs a second time, because the answer to its scheduling got lost",
			file: "claim/memory_calls.go",
			old:  `ok && (old.Status.Live() || old.CallID == call.ID) {`,
			new:  `ok && old.Status.Live() {`,
			by:   []check{onMemory, simulated},
		},
	}
}

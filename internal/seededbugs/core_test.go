package seededbugs

// What the scheduler makes of the store's and the index's answers.
func coreBugs() []bug {
	return []bug{
		{
			name: "claim-repeated-under-another-name",
			harm: "after a lost answer a worker doesn't know its own tasks, and they wait for the end of a lease",
			file: "core/claims.go",
			old:  `claimed, err = e.store.Claim(ctx, b.ids, b.lease)`,
			new:  "b.lease.Holder = e.nextHolder()\n\t\tclaimed, err = e.store.Claim(ctx, b.ids, b.lease)",
			by:   []check{simulated, committedConflict},
		},
		{
			name: "unknown-is-done",
			harm: "a completion that never reached the database is reported as recorded, and the task runs again",
			file: "core/settle.go",
			old:  `case itemErr == nil:`,
			new:  `case itemErr == nil || !answered(itemErr):`,
			by:   []check{simulated, scene("R46", ""), spoiltDatabase},
		},
		{
			name: "handler-beyond-its-lease",
			harm: "a worker that can't reach the database goes on beside the one who took over",
			file: "core/lease.go",
			old:  "over = append(over, j)\n",
			new:  "next = min(next, now+e.heartbeat())\n",
			by:   []check{simulatedLong, scene("R37", "")},
		},
		{
			name: "start-before-due",
			harm: "an order is cancelled for want of a payment that still had time",
			file: "core/jobs.go",
			old:  `if d <= 0 {`,
			new:  `if d <= e.opt.Ahead {`,
			by:   []check{simulated, scene("R21", ""), kills, scene("R40", "")},
		},
		{
			name: "id-that-stays-in-hand",
			harm: "after an outage of the database tasks that were about to be claimed are never claimed again by that process",
			file: "core/claims.go",
			old:  "\t\tdelete(e.hand, id)\n\t\td := max(",
			new:  "\t\td := max(",
			by:   []check{simulated, scene("R33", "mariadb"), spoiltDatabase},
		},
	}
}

package tabletest

// Why a case of the suite fails in a mode, by the mode's promises (claim.Table's
// Promises has the codes).
const (
	newDue     = "release-due: a row that is given back is due at the new time, which is then its due time"
	hidden     = "retry-hidden: sweeps see a row that backs off when that is over"
	undated    = "retry-undated: a row that failed or was given back is pending at its own due time at once"
	moment     = "fence: a row is not claimed again in the moment of its last change"
	timeOnly   = "fence: it is the time alone; a holder's name is stored nowhere"
	lostReply  = "lost-reply: a claim whose reply was lost can't be told from a lost race"
	takesAgain = "no-lease: nothing marks a row as taken"
	unfinished = "no-lease: Done is believed only when the row has left its state"
)

// reasons gives several cases one reason.
func reasons(all map[string][]string) map[string]string {
	weaker := map[string]string{}
	for reason, cases := range all {
		for _, name := range cases {
			weaker[name] = reason
		}
	}
	return weaker
}

func weakerFull() map[string]string {
	return reasons(map[string][]string{newDue: {"settle/released"}})
}

func weakerBase() map[string]string {
	return reasons(map[string][]string{hidden: {
		"contract/large-batch", "batch/at-every-boundary", "extend/lost", "settle/retry", "settle/released", "settle/late",
		"settle/mixed-batch", "waiting/after-thinning", "context/midway-claims", "break/claims", "lock/settle",
	}})
}

func weakerUpdated() map[string]string {
	return reasons(map[string][]string{
		undated: {
			"extend/lost", "settle/retry", "settle/released", "settle/late", "settle/mixed-batch",
			"settle/no-second-thoughts", "waiting/after-thinning", "lock/settle",
		},
		moment: {
			"contract/slices-are-the-callers", "contract/large-batch", "contract/concurrent", "times/exact",
			"token/rises", "token/rises-for-the-same-holder", "claim/counts",
		},
		timeOnly: {"batch/one-bad-of-many", "batch/at-every-boundary", "token/both-count"},
		lostReply: {
			"claim/holder-bytes", "claim/repeat", "claim/repeat-lapsed", "break/claims", "context/midway-claims",
			"break/midway-claims", "lock/claim", "contract/memory-is-the-callers",
		},
	})
}

func weakerTransition() map[string]string {
	return reasons(map[string][]string{
		takesAgain: {
			"contract/done-ctx", "contract/large-batch", "ids/change-one", "times/leases", "claim/holder-bytes",
			"token/rises-for-the-same-holder", "claim/granted", "claim/order-of-ids", "claim/due-by",
			"claim/never-before-lease-end", "claim/take-over-by-now", "claim/take-over", "claim/repeat", "claim/repeat-lapsed",
			"claim/repeat-too-late", "claim/counts", "batch/one-bad-of-many", "batch/at-every-boundary", "claim/one-winner",
			"claim/take-over-one-winner", "claim/against-settle", "token/both-count", "extend/moves-end", "extend/never-shortens",
			"extend/repeat", "extend/lapsed", "extend/lost", "settle/retry", "settle/released", "settle/late", "settle/older-refused",
			"settle/mixed-batch", "settle/repeat-after-grant", "settle/no-second-thoughts", "waiting/limit-counts-returned",
			"waiting/lapsed", "waiting/changes-nothing", "waiting/behind-many-held", "waiting/after-thinning", "context/midway-claims",
			"break/claims", "break/midway-claims", "lock/claim", "lock/extend", "lock/settle",
			"by/claim", "by/locked-claim",
		},
		unfinished: {"times/exact", "claim/gone", "settle/done", "settle/repeat-done", "contract/memory-is-the-callers"},
	})
}

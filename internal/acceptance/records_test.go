package acceptance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// spread sums up latenesses.
type spread struct {
	n             int
	p50, p99, max time.Duration
}

func spreadOf(events []event) spread {
	values := make([]time.Duration, len(events))
	for i, e := range events {
		values[i] = e.lateness()
	}
	slices.Sort(values)
	s := spread{n: len(values)}
	if s.n > 0 {
		s.p50, s.p99, s.max = values[(s.n-1)/2], values[(s.n*99+99)/100-1], values[s.n-1]
	}
	return s
}

func (s spread) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
	return fmt.Sprintf("lateness of %d: p50 %s p99 %s max %s ms", s.n, ms(s.p50), ms(s.p99), ms(s.max))
}

// checkOnce holds that each id of ids was started once, under one token, was
// completed once, and is done in the store by its first attempt; or, where claims
// may have taken effect unseen, by its second after one crash. It returns how many
// of the latter there are.
func checkOnce(t *testing.T, b *bench, workers []*process, ids []core.ID, unseen bool) (second int) {
	t.Helper()
	runs, completions := map[core.ID]int{}, map[core.ID]int{}
	for _, e := range said(workers, started, "") {
		runs[e.ID]++
	}
	for _, e := range said(workers, settled, "") {
		if e.Text == core.Done.String() && !e.Lost { // else the text is an error
			completions[e.ID]++
		}
	}
	rows := b.rows(t)
	var lost, twice, unrecorded, doubled, wrong []core.ID
	for _, id := range ids {
		switch r := rows[id]; {
		case runs[id] == 0:
			lost = append(lost, id)
		case runs[id] > 1:
			twice = append(twice, id)
		case completions[id] > 1:
			doubled = append(doubled, id)
		case completions[id] == 0:
			unrecorded = append(unrecorded, id)
		case unseen && r.status == claim.DoneState && r.attempts == 2 && r.crashes == 1:
			second++
		case r.status != claim.DoneState || r.attempts != 1 || r.crashes != 0:
			wrong = append(wrong, id)
		}
	}
	assert.Empty(t, first(lost), "%d never ran", len(lost))
	assert.Empty(t, first(twice), "%d ran twice", len(twice))
	assert.Empty(t, first(unrecorded), "%d without a completion", len(unrecorded))
	assert.Empty(t, first(doubled), "%d completed twice", len(doubled))
	assert.Empty(t, first(wrong), "%d not done by their first attempt, by the store's rows", len(wrong))
	return second
}

// checkTokens holds that no (id, token) ran twice, which is so whatever crashes.
func checkTokens(t *testing.T, workers []*process) {
	t.Helper()
	type run struct {
		id    core.ID
		token int64
	}
	seen := map[run]int{}
	for _, e := range said(workers, started, "") {
		seen[run{e.ID, e.Token}]++
	}
	for r, n := range seen {
		assert.Equal(t, 1, n, "runs of %s under token %d", r.id, r.token)
	}
}

// first is a few of many, for a message.
func first(ids []core.ID) []core.ID { return ids[:min(len(ids), 5)] }

// failures counts the calls to backends that failed, by name.
func failures(workers []*process) map[string]int {
	n := map[string]int{}
	for _, e := range said(workers, failed, "") {
		op, _, _ := cutTwice(e.Text)
		n[op]++
	}
	return n
}

// cutTwice splits "index: take: why" behind the operation.
func cutTwice(text string) (op, why string, ok bool) {
	for i, colons := 0, 0; i < len(text); i++ {
		if text[i] == ':' {
			if colons++; colons == 2 {
				return text[:i], text[i+1:], true
			}
		}
	}
	return text, "", false
}

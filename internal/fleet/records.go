package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// Spread sums up latenesses.
type Spread struct {
	N             int
	P50, P99, Max time.Duration
}

// SpreadOf sums up the latenesses of Started events.
func SpreadOf(events []Event) Spread {
	values := make([]time.Duration, len(events))
	for i, e := range events {
		values[i] = e.Lateness()
	}
	return Sum(values)
}

// Sum sums up other times than latenesses. It sorts them.
func Sum(values []time.Duration) Spread {
	slices.Sort(values)
	s := Spread{N: len(values)}
	if s.N > 0 {
		s.P50, s.P99, s.Max = values[(s.N-1)/2], values[(s.N*99+99)/100-1], values[s.N-1]
	}
	return s
}

// String gives the figures in milliseconds.
func (s Spread) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
	return fmt.Sprintf("lateness of %d: p50 %s p99 %s max %s ms", s.N, ms(s.P50), ms(s.P99), ms(s.Max))
}

// CheckOnce holds that each id of ids was started once, under one token, was
// completed once, and is done in the store by its first attempt; or, where claims
// may have taken effect unseen, by its second after one crash. It returns how many
// of the latter there are.
func CheckOnce(t *testing.T, b *Bench, workers []*Process, ids []core.ID, unseen bool) (second int) {
	t.Helper()
	runs, completions := map[core.ID]int{}, map[core.ID]int{}
	for _, e := range Said(workers, Started, "") {
		runs[e.ID]++
	}
	for _, e := range Said(workers, Settled, "") {
		if e.Completed() {
			completions[e.ID]++
		}
	}
	rows := b.Rows(t)
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
		case unseen && r.Status == claim.DoneState && r.Attempts == 2 && r.Crashes == 1:
			second++
		case r.Status != claim.DoneState || r.Attempts != 1 || r.Crashes != 0:
			wrong = append(wrong, id)
		}
	}
	assert.Empty(t, First(lost), "%d never ran", len(lost))
	assert.Empty(t, First(twice), "%d ran twice", len(twice))
	assert.Empty(t, First(unrecorded), "%d without a completion", len(unrecorded))
	assert.Empty(t, First(doubled), "%d completed twice", len(doubled))
	assert.Empty(t, First(wrong), "%d not done by their first attempt, by the store's rows", len(wrong))
	return second
}

// CheckTokens holds that no (id, token) ran twice, which is so whatever crashes.
func CheckTokens(t *testing.T, workers []*Process) {
	t.Helper()
	type run struct {
		id    core.ID
		token int64
	}
	seen := map[run]int{}
	for _, e := range Said(workers, Started, "") {
		seen[run{e.ID, e.Token}]++
	}
	for r, n := range seen {
		if n != 1 {
			assert.Equal(t, 1, n, "runs of %s under token %d", r.id, r.token)
		}
	}
}

// First is a few of many, for a message.
func First(ids []core.ID) []core.ID { return ids[:min(len(ids), 5)] }

// Failures counts the calls to backends that failed, by name.
func Failures(workers []*Process) map[string]int {
	n := map[string]int{}
	for _, e := range Said(workers, Failed, "") {
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

package tabletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// testTexts: a failure's text describes, and never decides. A column that can't hold it
// holds less of it, or none, and the outcome is recorded all the same.
func testTexts(t *testing.T, run func(name string, f func(t *testing.T, h Handle)), one core.Task) {
	t.Helper()
	text := "日本語 😀 " + strings.Repeat("long text ", 33)
	for _, c := range []struct {
		chars int
		want  string
	}{
		{chars: 1000, want: text},
		{chars: 300, want: text[:249] + " (cut)"},
		{chars: 100, want: "??? ? " + text[len("日本語 😀 "):][:48] + " (cut)"},
		{chars: 0, want: ""},
	} {
		run(fmt.Sprintf("a failure's text that a column of %d characters can't hold doesn't keep the outcome from being recorded", c.chars), func(t *testing.T, h Handle) {
			h.FitErrors(t, c.chars)
			two, three := core.Task{ID: "2", Due: base}, core.Task{ID: "3", Due: base}
			h.Put(t, one, two, three)
			got, err := h.Claim(t.Context(), []core.ID{"1", "2", "3"}, lease("a", base))
			require.NoError(t, err)
			list := []core.Settlement{
				{Grant: got[0].Grant, Outcome: core.DeadLetter, Err: text},
				{Grant: got[1].Grant, Outcome: core.Done},
				{Grant: got[2].Grant, Outcome: core.DeadLetter, Err: text},
			}
			require.NoError(t, h.Settle(t.Context(), at(1), list))
			require.NoError(t, h.Settle(t.Context(), at(1), list), "a repeat")
			assert.Equal(t, []string{Dead, c.want, Done, Dead, c.want}, []string{
				h.read(t, "1", "status"), h.read(t, "1", "last_error"), h.read(t, "2", "status"), h.read(t, "3", "status"), h.read(t, "3", "last_error"),
			})
			// The user's transaction goes on after what was refused in it.
			for i, outcome := range []core.Outcome{core.Retry, core.DeadLetter} {
				id := core.ID(fmt.Sprint("tx", i))
				h.Put(t, core.Task{ID: id, Due: base})
				claimed := h.want(t, core.Granted, lease("b", base), id)
				s := core.Settlement{Grant: claimed.Grant, Outcome: outcome, Err: text}
				if outcome == core.Retry {
					s.Due = at(5000)
				}
				require.NoError(t, h.SettleTx(t, at(2), s))
				assert.Equal(t, []string{map[core.Outcome]string{core.Retry: Pending, core.DeadLetter: Dead}[outcome], c.want}, []string{
					h.read(t, string(id), "status"), h.read(t, string(id), "last_error"),
				})
				lost(t, h.SettleTx(t, at(2), core.Settlement{Grant: claimed.Grant, Outcome: core.Done}), "it was settled")
			}
		})
	}
}

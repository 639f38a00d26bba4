package tabletest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// testClocks: due times by the clock of a zone that is put forward and back each year.
// Rows are found once each, page by page, also those that say a time which the clock
// leaves out, and none is due too early, whichever of two meanings it has.
func testClocks(t *testing.T, c Config, run func(name string, f func(t *testing.T, h Handle))) {
	t.Helper()
	due, after := c.Table("orders", "a").Due.Source()
	if due.Kind != claim.DateTime || due.Zone == time.UTC {
		return
	}
	for name, change := range map[string]time.Time{
		"put forward": time.Date(2030, 3, 31, 1, 0, 0, 0, time.UTC), // Berlin's
		"put back":    time.Date(2030, 10, 27, 1, 0, 0, 0, time.UTC),
	} {
		run("rows that are due while the clock is "+name, func(t *testing.T, h Handle) {
			want := map[core.ID]time.Time{}
			for i := range 18 * 2 { // two at each time, three hours around the change
				id := core.ID(fmt.Sprintf("%02d", (i*7)%36)) // not in the order of their times
				value := due.AtLeast(change) + int64(i/2-9)*(10*time.Minute).Microseconds()
				h.Put(t, core.Task{ID: id, Due: base})
				h.update(t, string(id), due.Name+" = "+h.Literal(due, value))
				want[id] = due.Read(value).Add(after)
			}
			for _, before := range []time.Time{change.Add(24 * time.Hour), change.Add(after), change.Add(after - 30*time.Minute), change.Add(after + 30*time.Minute)} {
				found := map[core.ID]time.Time{}
				for cursor, pages := (core.Entry{}), 0; ; pages++ {
					require.Less(t, pages, 20, "pages without an end")
					page, err := h.Waiting(t.Context(), base, cursor, before, 5)
					require.NoError(t, err)
					for _, e := range page {
						require.NotContains(t, found, e.ID, "found again")
						require.False(t, e.Due.Before(cursor.Due), "%s comes after %s", e, cursor)
						found[e.ID], cursor = e.Due, e
					}
					if len(page) < 5 {
						break
					}
				}
				for id, due := range want {
					if due.Before(before) {
						assert.Equal(t, due, found[id], "of row %s, before %s", id, before)
					} else {
						assert.NotContains(t, found, id, "before %s", before)
					}
				}
			}
			for id, due := range want {
				h.want(t, core.NotDue, lease("h", due.Add(-time.Second)), id)
				if c.Name == "Transition" { // one claim a row is enough
					got := h.claim(t, lease("h", due.Add(time.Hour)), id)
					require.Equal(t, core.Granted, got.Verdict)
				}
			}
		})
	}
}

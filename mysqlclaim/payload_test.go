package mysqlclaim

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// Rows come from a table of literals, whose columns have one type for all rows: what is
// long must not be cut to what the server takes for the column's length.
func TestPayloadsOfAllLengthsInOneBatchAreStoredWhole(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		text := func(n int) []byte { return bytes.Repeat([]byte("a"), n) }
		binary := func(n int) []byte { return bytes.Repeat([]byte{0xff, 0, '\'', '\\'}, n/4) }
		lengths := []int{0, 4, 252, 256, 1020, 1024, 1028, 16_384, 32_764, 32_768, 65_532, 65_536, 65_540, 131_072, 200_000, core.MaxPayloadBytes}
		for name, order := range map[string]func(i int) int{
			"rising": func(i int) int { return i }, "falling": func(i int) int { return len(lengths) - 1 - i },
		} {
			for kind, make := range map[string]func(int) []byte{"text": text, "binary": binary} {
				s := fresh(t, b, Options{})
				for round := range 2 { // the second replaces finished rows
					var tasks []core.Task
					for i := range lengths {
						one := task(core.ID(fmt.Sprintf("t%02d", i)))
						one.Payload, one.Meta = make(min(lengths[order(i)], core.MaxPayloadBytes)), binary(min(lengths[order(i)], 1000))
						tasks = append(tasks, one)
					}
					require.NoError(t, s.Insert(t.Context(), callNamed(fmt.Sprint("call", round)), tasks))
					var dead []core.Settlement
					for i, c := range grant(t, s, leaseOf("h", base), idsOf(tasks)...) {
						require.Len(t, c.Task.Payload, len(tasks[i].Payload), "%s %s, round %d", kind, name, round)
						require.True(t, bytes.Equal(tasks[i].Payload, c.Task.Payload), "%s %s: %d bytes", kind, name, len(tasks[i].Payload))
						require.True(t, bytes.Equal(tasks[i].Meta, c.Task.Meta))
						dead = append(dead, core.Settlement{Grant: c.Grant, Outcome: core.DeadLetter})
					}
					require.NoError(t, s.Settle(t.Context(), base, dead))
				}
			}
		}
	})
}

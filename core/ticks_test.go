package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// Processes that schedule the same tick, one of them late, as docs/handlers.md has it.
func TestATickThatIsScheduledLateUnderItsOwnCallRunsOnce(t *testing.T) {
	tick := time.Now().Truncate(time.Second)
	for name, want := range map[string]int{"by its id alone": 2, "under its own call": 1} {
		t.Run(name, func(t *testing.T) {
			p := newParts(t)
			r := &recorder{}
			s := p.scheduler(t, r, core.Options{})
			schedule := func() error {
				task := core.Task{ID: "report@tick", Due: tick}
				if want == 2 {
					return p.prod.Schedule(t.Context(), task)
				}
				call, err := p.prod.NewCall(t.Context())
				require.NoError(t, err)
				call.ID = string(task.ID)
				return p.prod.ScheduleCall(t.Context(), call, task)
			}
			require.NoError(t, schedule())
			if err := schedule(); want == 2 {
				require.ErrorIs(t, err, core.ErrExists)
			} else {
				require.NoError(t, err)
			}
			_, err := s.Tick(t.Context(), tick.Add(time.Second))
			require.NoError(t, err)
			require.NoError(t, schedule(), "a process is late")
			_, err = s.Tick(t.Context(), tick.Add(2*time.Second))
			require.NoError(t, err)
			assert.Equal(t, want, r.get("report@tick"))
		})
	}
}

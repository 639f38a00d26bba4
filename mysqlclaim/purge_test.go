package mysqlclaim

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// Fewer than asked for means that there are no more, also where somebody else deletes
// the same rows.
func TestAShortPurgeIsTheLast(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		for i := range 6 {
			tasks := someTasks(fmt.Sprint("p", i), 500)
			insert(t, s, tasks...)
			var done []core.Settlement
			for _, c := range grant(t, s, leaseOf("h", base), idsOf(tasks)...) {
				done = append(done, core.Settlement{Grant: c.Grant, Outcome: core.Done})
			}
			require.NoError(t, s.Settle(t.Context(), at(i/2), done)) // many were finished at one instant
		}
		var wg sync.WaitGroup
		total := make([]int, 3)
		for i := range total {
			wg.Go(func() {
				for {
					n, err := s.Purge(t.Context(), at(100), 150)
					if !assert.NoError(t, err) {
						return
					}
					if total[i] += n; n < 150 {
						return
					}
				}
			})
		}
		wg.Wait()
		assert.Equal(t, 3000, total[0]+total[1]+total[2])
	})
}

// What another caller has deleted, or has locked, is passed over.
func TestAPurgeReadsOnBehindRowsThatSomebodyElseHas(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		s := fresh(t, b, Options{})
		tasks := someTasks("n", 9)
		insert(t, s, tasks...)
		var done []core.Settlement
		for _, c := range grant(t, s, leaseOf("h", base), idsOf(tasks)...) {
			done = append(done, core.Settlement{Grant: c.Grant, Outcome: core.Done})
		}
		require.NoError(t, s.Settle(t.Context(), base, done))
		unlock := lockRow(t, s, tasks[1].ID)
		n, err := s.Purge(t.Context(), at(1), 3)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		n, err = s.Purge(t.Context(), at(1), 100)
		require.NoError(t, err)
		assert.Equal(t, 5, n)
		unlock()
		n, err = s.Purge(t.Context(), at(1), 100)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

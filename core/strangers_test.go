package core_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// What it costs not to know a kind must not grow with every task of it that is due.
func TestManyTasksOfAnUnknownKindAreClaimedTogetherAndSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(t)
		store := &hookedStore{Store: p.store}
		store.set(func(op string, call func() error) error {
			time.Sleep(time.Millisecond) // a round trip, in which slots come free
			return call()
		})
		s := newScheduler(t, p.idx, store, &core.Mux{}, core.Options{})
		stop := running(t, s)
		const n = 1000
		for i := range n {
			require.NoError(t, p.prod.Schedule(t.Context(), core.Task{ID: core.ID(fmt.Sprint(i)), Kind: "later", Due: time.Now()}))
		}
		time.Sleep(time.Minute)
		claims, settles := store.count("claim"), store.count("settle")
		time.Sleep(time.Minute)
		claims, settles = store.count("claim")-claims, store.count("settle")-settles
		// 100 slots, claimed by the quarter at least: forty claims for each back-off of 2.5 to 5 s, some 20 a minute.
		assert.Less(t, claims, 800, "claims in a minute")
		assert.Less(t, settles, 800, "settle batches in a minute")
		var back []time.Time
		for i := range n {
			row, _ := p.store.Task(core.ID(fmt.Sprint(i)))
			require.Equal(t, claim.Pending, row.Status)
			require.Zero(t, row.Attempts)
			back = append(back, time.UnixMilli(row.Due))
		}
		assert.WithinRange(t, back[0], time.Now().Add(-time.Second), time.Now().Add(5*time.Second))
		require.NoError(t, stop())
	})
}

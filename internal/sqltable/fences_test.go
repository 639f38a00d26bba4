package sqltable

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/core"
)

// What a heartbeat wrote is the only proof of a grant: it must be known for as long
// as the lease lasts, also where that is longer than keepFences and thousands of
// others come and go.
func TestAFenceIsKnownUntilItsLeaseIsOver(t *testing.T) {
	const lease = time.Hour
	var f fences
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	held := core.Grant{ID: "held", Token: 1}
	f.note(held, now, now.Add(lease), func(x *fence) { x.held = []int64{2} })
	for i := range 5000 {
		later := now.Add(lease * time.Duration(i) / 5000)
		g := core.Grant{ID: core.ID(fmt.Sprint(i)), Token: 1}
		until := later // settled
		if i%2 == 0 {
			until = later.Add(lease) // extended
		}
		f.note(g, later, until, func(x *fence) { x.held = []int64{2} })
	}
	assert.Equal(t, []int64{2}, f.held(held))
	f.note(core.Grant{ID: "other"}, now.Add(5*lease), now.Add(5*lease), func(*fence) {})
	for i := range 10_000 {
		f.note(core.Grant{ID: core.ID(fmt.Sprint("late", i))}, now.Add(5*lease), now.Add(5*lease), func(*fence) {})
	}
	assert.Equal(t, []int64{1}, f.held(held), "and is forgotten at last")
}

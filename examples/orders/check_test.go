package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aDay is two orders, one paid and one cancelled, in good order: two mugs are
// sold, three teas came back.
func aDay() (books, []order, map[string]bool, map[string]int) {
	b := books{
		orders: []orderFacts{
			{id: "paid", status: "paid", dueAt: 1000},
			{id: "unpaid", status: "cancelled", dueAt: 1000, cancellations: []cancellation{{at: 1001, late: time.Millisecond}}},
		},
		available: map[string]int{"mug": 8, "tea": 10},
		done:      1,
	}
	orders := []order{
		{id: "paid", items: []item{{"mug", 2}}},
		{id: "unpaid", items: []item{{"tea", 3}}},
	}
	return b, orders, map[string]bool{"paid": true}, map[string]int{"mug": 10, "tea": 10}
}

func reportOf(b books, orders []order, s *shop, initially map[string]int) (report, string) {
	r := newReport(b, s, orders, initially)
	var text bytes.Buffer
	r.print(&text)
	return r, text.String()
}

func TestAGoodDayPasses(t *testing.T) {
	b, orders, accepted, initially := aDay()
	r, text := reportOf(b, orders, &shop{accepted: accepted}, initially)
	assert.False(t, r.failed())
	assert.NotContains(t, text, "FAILED")
	assert.Equal(t, 1, r.cancelled)
	assert.Zero(t, r.foundPaid)
	assert.Equal(t, []time.Duration{time.Millisecond}, r.onTime)
}

func TestEveryFaultInTheBooksIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(b *books, s *shop)
		rule  string
	}{
		"an order is missing":        {func(b *books, _ *shop) { b.orders = b.orders[:1] }, "every order of the file is in the books"},
		"an unpaid order is pending": {func(b *books, _ *shop) { b.orders[1].status = "pending"; b.orders[1].cancellations = nil }, "every unpaid order was cancelled, exactly once"},
		"an order is cancelled twice": {func(b *books, _ *shop) {
			b.orders[1].cancellations = append(b.orders[1].cancellations, cancellation{at: 1002})
		}, "every unpaid order was cancelled, exactly once"},
		"a status without a record":       {func(b *books, _ *shop) { b.orders[1].cancellations = nil }, "every unpaid order was cancelled, exactly once"},
		"a paid order is cancelled":       {func(b *books, _ *shop) { b.orders[0].status = "cancelled" }, "no paid order was touched"},
		"a paid order has a cancellation": {func(b *books, _ *shop) { b.orders[0].cancellations = []cancellation{{at: 1001}} }, "no paid order was touched"},
		"a cancellation is early":         {func(b *books, _ *shop) { b.orders[1].cancellations[0].at = 999 }, "no order was cancelled before its time"},
		"stock came back twice":           {func(b *books, _ *shop) { b.available["tea"] = 13 }, "the stock of every product adds up"},
		"stock did not come back":         {func(b *books, _ *shop) { b.available["tea"] = 7 }, "the stock of every product adds up"},
		"a task is left":                  {func(b *books, _ *shop) { b.live = 1 }, "no task is left over"},
		"a task is dead":                  {func(b *books, _ *shop) { b.dead = 1 }, "no task is left over"},
		"a payment is refused early":      {func(_ *books, s *shop) { s.early = 1 }, "no payment was refused before the order's time was over"},
	} {
		t.Run(name, func(t *testing.T) {
			b, orders, accepted, initially := aDay()
			s := &shop{accepted: accepted}
			c.fault(&b, s)
			r, text := reportOf(b, orders, s, initially)
			assert.True(t, r.failed())
			assert.Contains(t, text, "FAILED  "+c.rule+": 1\n")
		})
	}
}

func TestTheFileIsRead(t *testing.T) {
	orders, err := readOrders(ordersCSV, 0)
	require.NoError(t, err)
	assert.Len(t, orders, 5000)
	some, err := readOrders(ordersCSV, 10)
	require.NoError(t, err)
	assert.Equal(t, orders[:10], some)
	assert.Equal(t, []item{{"basket", 3}, {"tray", 3}, {"vase", 1}}, some[1].items)
	assert.True(t, some[0].paid.IsZero())

	for name, line := range map[string]string{
		"a time":     "A1,yesterday,,mug:1",
		"a payment":  "A1,2025-11-28T09:00:00Z,soon,mug:1",
		"a quantity": "A1,2025-11-28T09:00:00Z,,mug:none",
		"a column":   "A1,2025-11-28T09:00:00Z",
	} {
		_, err := readOrders("order,placed,paid,items\n"+line+"\n", 0)
		assert.ErrorContains(t, err, "orders.csv: ", name)
	}
}

func TestTheShopsClockMapsTheDayToRealTime(t *testing.T) {
	open := time.Date(2025, 11, 28, 9, 0, 0, 0, time.UTC)
	c := shopClock{speed: 600, open: open, local: time.Now(), store: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	assert.Equal(t, c.store.Add(3*time.Second), c.due(open.Add(30*time.Minute)))
	assert.False(t, c.now().Before(open))
}

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var due = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// aDay is four orders in good order: one paid, one cancelled for its time was up,
// one that its customer cancelled and one that the shop deleted. Two mugs are sold,
// all else came back.
func aDay() (books, *ledger, []order, map[string]int) {
	b := books{
		orders: []orderFacts{
			{id: "paid", status: "completed", due: due},
			{id: "unpaid", status: "cancelled", due: due},
			{id: "withdrawn", status: "cancelled", due: due},
		},
		cancellations: map[string][]cancellation{"unpaid": {{worker: "w1", at: due, late: time.Millisecond}}},
		available:     map[string]int{"mug": 8, "tea": 10},
		sold:          map[string]int{"mug": 2},
	}
	orders := []order{
		{id: "paid", items: []item{{"mug", 2}}},
		{id: "unpaid", items: []item{{"tea", 3}}},
		{id: "withdrawn", items: []item{{"tea", 1}}},
		{id: "deleted", items: []item{{"mug", 1}}},
	}
	l := newLedger()
	l.hear(customersName, note{paid, "paid"})
	l.hear(customersName, note{withdrawn, "withdrawn"})
	l.hear(customersName, note{deleted, "deleted"})
	l.hear("w1", note{started, "unpaid"})
	l.hear("w1", note{returned, "unpaid"})
	return b, l, orders, map[string]int{"mug": 10, "tea": 10}
}

func reportOf(b books, l *ledger, orders []order, initially map[string]int) (report, string) {
	r := newReport(b, l, map[string]bool{"unpaid": true, "paid": true}, orders, initially)
	var text bytes.Buffer
	r.print(&text)
	return r, text.String()
}

func TestAGoodDayPasses(t *testing.T) {
	r, text := reportOf(aDay())
	assert.False(t, r.failed())
	assert.NotContains(t, text, "FAILED")
	assert.Equal(t, 1, r.cancelled)
	assert.Equal(t, 2, r.gone)
	assert.Equal(t, []int{2, 1}, []int{r.forgot, r.found})
	assert.Equal(t, []time.Duration{time.Millisecond}, r.onTime)
	assert.Zero(t, r.again+r.takenOver+r.outrun)
}

func TestEveryFaultInTheBooksIsFound(t *testing.T) {
	const (
		missing = "every order of the file is in the books, but for those that the shop deleted"
		unpaid  = "every unpaid order was cancelled, exactly once"
		touched = "no paid order was touched"
		gone    = "no order was touched that the customer or the shop had withdrawn"
		stock   = "the stock of every product is what it was, less the paid orders"
	)
	twice := []cancellation{{at: due}, {at: due}}
	for name, c := range map[string]struct {
		fault func(b *books, l *ledger)
		rule  string
	}{
		"an order is missing": {func(b *books, _ *ledger) { b.orders = b.orders[:2] }, missing},
		"a deleted order is there": {func(b *books, _ *ledger) {
			b.orders = append(b.orders, orderFacts{id: "deleted", status: "cancelled", due: due})
		}, missing},
		"an unpaid order is pending":            {func(b *books, _ *ledger) { b.orders[1].status = "pending"; delete(b.cancellations, "unpaid") }, unpaid},
		"an unpaid order is left in processing": {func(b *books, _ *ledger) { b.orders[1].status = "processing" }, "no order is left open"},
		"an order is cancelled twice":           {func(b *books, _ *ledger) { b.cancellations["unpaid"] = twice }, unpaid},
		"a status without a record":             {func(b *books, _ *ledger) { delete(b.cancellations, "unpaid") }, unpaid},
		"a paid order is cancelled":             {func(b *books, _ *ledger) { b.orders[0].status = "cancelled" }, touched},
		"a paid order has a cancellation":       {func(b *books, _ *ledger) { b.cancellations["paid"] = twice[:1] }, touched},
		"a withdrawn order has a cancellation":  {func(b *books, _ *ledger) { b.cancellations["withdrawn"] = twice[:1] }, gone},
		"a deleted order has a cancellation":    {func(b *books, _ *ledger) { b.cancellations["deleted"] = twice[:1] }, gone},
		"a withdrawn order is open again":       {func(b *books, _ *ledger) { b.orders[2].status = "pending" }, gone},
		"a cancellation is early":               {func(b *books, _ *ledger) { b.cancellations["unpaid"][0].at = due.Add(-time.Millisecond) }, "no order was cancelled before its time"},
		"stock came back twice":                 {func(b *books, _ *ledger) { b.available["tea"] = 13 }, stock},
		"stock did not come back":               {func(b *books, _ *ledger) { b.available["tea"] = 7 }, stock},
		"a sale is not in the books":            {func(b *books, _ *ledger) { delete(b.sold, "mug") }, stock},
		"a payment is refused early":            {func(_ *books, l *ledger) { l.hear(customersName, note{refusedEarly, "unpaid"}) }, "no payment was refused before the order's time was up"},
	} {
		t.Run(name, func(t *testing.T) {
			b, l, orders, initially := aDay()
			c.fault(&b, l)
			r, text := reportOf(b, l, orders, initially)
			assert.True(t, r.failed())
			assert.Contains(t, text, "FAILED  "+c.rule+": 1\n")
		})
	}
}

func TestTheReportTellsWhatAKilledWorkerHadInHand(t *testing.T) {
	b, l, orders, initially := aDay()
	l.hear("w2", note{started, "unpaid"})
	l.kill("w2")
	l.hear("w3", note{outrun, "unpaid"})
	r, text := reportOf(b, l, orders, initially)
	assert.False(t, r.failed())
	assert.Equal(t, []int{1, 1, 1}, []int{r.takenOver, r.again, r.outrun})
	assert.Equal(t, []time.Duration{time.Millisecond}, r.late)
	assert.Contains(t, text, "from w2: killed")
}

func TestTheFileIsReadAndRepeated(t *testing.T) {
	orders, err := readOrders(ordersCSV, 0)
	require.NoError(t, err)
	assert.Len(t, orders, ordersADay)
	some, err := readOrders(ordersCSV, 10)
	require.NoError(t, err)
	assert.Equal(t, orders[:10], some)
	assert.Equal(t, "A00001", orders[0].id)
	assert.Equal(t, []item{{"glass", 3}, {"carafe", 2}, {"jam", 1}, {"candle", 1}, {"plate", 2}}, orders[0].items)

	many, err := readOrders(ordersCSV, mostOrders)
	require.NoError(t, err)
	ids := map[string]bool{}
	for i, o := range many {
		ids[o.id] = true
		if i > 0 {
			require.False(t, o.placed.Before(many[i-1].placed), "%s is in order", o.id)
		}
		require.Equal(t, orders[i%ordersADay].items, o.items)
	}
	assert.Len(t, ids, mostOrders, "no number is there twice")

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
	store := time.Date(2030, 1, 1, 0, 0, 0, 900e6, time.UTC)
	c := shopClock{Speed: 600, Open: open, Local: time.Now(), Store: store}
	assert.False(t, c.now().Before(open))
	assert.Equal(t, 3*time.Second, c.delay())
	o := order{placed: open.Add(time.Minute), paid: open.Add(31 * time.Minute)} // at the last moment
	assert.Equal(t, store.Add(100*time.Millisecond), c.createdAt(o), "rounded up to a second")
	assert.Equal(t, c.createdAt(o).Add(3*time.Second), c.due(o))
	assert.Equal(t, c.due(o), c.paysAt(o))
}

func TestCustomersComeByTimeAndManyAtTheDeadline(t *testing.T) {
	orders, err := readOrders(ordersCSV, 0)
	require.NoError(t, err)
	c := shopClock{Speed: 600, Open: orders[0].placed, Store: due}
	all := visits(orders, c)
	counts, close := map[what]int{}, 0
	for i, v := range all {
		counts[v.what]++
		if i > 0 {
			require.False(t, v.at.Before(all[i-1].at))
		}
		if v.at.Sub(v.due).Abs() < 100*time.Millisecond {
			close++
		}
	}
	assert.Greater(t, close, 500)
	assert.Greater(t, counts[paid], 3000)
	assert.Greater(t, counts[withdrawn], 20)
	assert.Greater(t, counts[deleted], 20)
}

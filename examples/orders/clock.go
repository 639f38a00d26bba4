package main

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// allowed is the time to pay, by the file's day.
const allowed = 30 * time.Minute

// shopClock maps the day of the file, which goes by fast, to real time. All
// processes have the same one.
type shopClock struct {
	Speed float64
	Open  time.Time // by the file, what Local and Store stand for
	Local time.Time // by this host's clock
	Store time.Time // by the store's clock, which decides when an order is due
}

// start makes the shop open after lead. The store's clock is read a few times:
// an answer that was long on its way tells a time that is over.
func (c *shopClock) start(ctx context.Context, store core.Claimer, lead time.Duration) error {
	local := time.Now()
	c.Local, c.Store = local.Add(lead), local.Add(lead)
	source, ok := store.(core.TimeSource)
	if !ok { // such as SQLite, which has no clock of its own
		return nil
	}
	for i := range 10 {
		now, err := source.Now(ctx)
		if err != nil {
			return err
		}
		if at := now.Add(time.Until(c.Local)); i == 0 || at.After(c.Store) {
			c.Store = at
		}
	}
	return nil
}

// now returns the time of the file's day.
func (c shopClock) now() time.Time {
	return c.Open.Add(time.Duration(float64(time.Since(c.Local)) * c.Speed))
}

// real returns how much real time a time of the file's day takes.
func (c shopClock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Speed)
}

// storeNow returns the time by the store's clock.
func (c shopClock) storeNow() time.Time { return c.Store.Add(time.Since(c.Local)) }

// delay is how much real time an order's customer has to pay.
func (c shopClock) delay() time.Duration { return c.real(allowed).Truncate(time.Millisecond) }

// createdAt is an order's created_at, by the store's clock. The column has whole
// seconds; it is rounded up, so that no customer has less than the full time.
func (c shopClock) createdAt(o order) time.Time {
	t := c.Store.Add(c.real(o.placed.Sub(c.Open)))
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// due is when, by the store's clock, an order's time is up.
func (c shopClock) due(o order) time.Time { return c.createdAt(o).Add(c.delay()) }

// paysAt is when, by the store's clock, the customer pays. The file says how long
// that takes; a payment in the last second is one also where created_at was rounded.
func (c shopClock) paysAt(o order) time.Time {
	return c.createdAt(o).Add(c.real(o.paid.Sub(o.placed)))
}

// dateTime is how a DATETIME is written, in UTC.
func dateTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

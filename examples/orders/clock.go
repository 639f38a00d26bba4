package main

import "time"

// shopClock maps the day of the file, which goes by fast, to real time.
type shopClock struct {
	speed float64
	open  time.Time // by the file, what local and store stand for
	local time.Time // by this process's clock
	store time.Time // by the store's clock, which decides when a task is due
}

// now returns the time of the file's day.
func (c shopClock) now() time.Time {
	return c.open.Add(time.Duration(float64(time.Since(c.local)) * c.speed))
}

// real returns how much real time a time of the file's day takes.
func (c shopClock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.speed)
}

// due returns when, by the store's clock, it is t in the file's day.
func (c shopClock) due(t time.Time) time.Time { return c.store.Add(c.real(t.Sub(c.open))) }

// storeNow returns the time by the store's clock.
func (c shopClock) storeNow() time.Time { return c.store.Add(time.Since(c.local)) }

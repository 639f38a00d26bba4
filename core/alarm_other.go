//go:build !linux

package core

// newAlarmTimers returns one of Go's timers: they wait in finer steps here.
func newAlarmTimers() []alarmTimer { return []alarmTimer{newGoTimer()} }

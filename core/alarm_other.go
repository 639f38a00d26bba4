//go:build !linux

package core

// newExactTimer returns a timer of Go's: they are exact here.
func newExactTimer() exactTimer { return newGoTimer() }

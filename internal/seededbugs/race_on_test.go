//go:build race

package seededbugs

// buildFlags are those of the Makefile: what is compiled by then needs no compiling
// again.
var buildFlags = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc=-race=false"}

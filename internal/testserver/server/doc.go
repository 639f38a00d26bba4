// Package server runs real Redis, MariaDB, MySQL, Postgres and pgbouncer
// servers as child processes on 127.0.0.1, each with a free port and a private
// data folder, for tests and benchmarks. Nothing of the machine's own services
// is touched, and no container engine is needed.
//
// Servers end with the process that started them, however it ends: a small
// shell, the reaper, waits for the end of its parent on a pipe, ends the
// servers and removes their folders. Because of it this package needs no
// goroutine of its own, which keeps leak detectors in tests quiet.
//
// It doesn't import testing; package testserver does that.
package server

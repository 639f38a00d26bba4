package core

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// timerFile is an exactTimer by the kernel: a file that can be read when it goes
// off. The kernel tells the runtime so at once, and no thread is kept for it.
// See timerfd_create(2).
type timerFile struct {
	fd   uintptr
	file *os.File
}

const clockMonotonic = 1 // CLOCK_MONOTONIC

// newExactTimer returns a timer that is exact to some tens of microseconds, or one
// of Go's where the kernel gives none (too many open files), or where the process's
// time is not the kernel's, as in a bubble of testing/synctest.
func newExactTimer() exactTimer {
	began := time.Now()
	if syscall.Nanosleep(&syscall.Timespec{Nsec: 1}, nil) != nil || time.Since(began) == 0 {
		return newGoTimer()
	}
	// TFD_NONBLOCK and TFD_CLOEXEC are O_NONBLOCK and O_CLOEXEC.
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return newGoTimer()
	}
	return &timerFile{fd: fd, file: os.NewFile(fd, "timer")}
}

// itimerspec is the kernel's struct.
type itimerspec struct{ interval, value syscall.Timespec }

func (t *timerFile) set(d time.Duration) {
	spec := itimerspec{value: syscall.NsecToTimespec(int64(max(d, 1)))}
	// It fails for a bad number or pointer only.
	_, _, _ = syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, t.fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

func (t *timerFile) wait() bool {
	var times [8]byte
	_, err := t.file.Read(times[:])
	return err == nil
}

func (t *timerFile) close() { _ = t.file.Close() }

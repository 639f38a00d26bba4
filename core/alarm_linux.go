package core

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// timerFile is a timer of the kernel's: a file that can be read when it goes off. A
// runtime that has nothing else to do hears of it at once, within a tenth of a
// millisecond; one that has, only later. No thread is kept for it. See
// timerfd_create(2).
type timerFile struct {
	fd   uintptr
	file *os.File
}

const clockMonotonic = 1 // CLOCK_MONOTONIC

// newAlarmTimers returns one of Go's timers, which is on time in a busy process, and
// one of the kernel's, which is so in an idle one, unless there is none to be had
// (too many open files), or the process's time is not the kernel's, as in a bubble
// of testing/synctest.
func newAlarmTimers() []alarmTimer {
	timers := []alarmTimer{newGoTimer()}
	began := time.Now()
	_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 1}, nil) // a signal may cut it: time has passed all the same
	if time.Since(began) == 0 {
		return timers
	}
	// TFD_NONBLOCK and TFD_CLOEXEC are O_NONBLOCK and O_CLOEXEC.
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return timers
	}
	return append(timers, &timerFile{fd: fd, file: os.NewFile(fd, "timer")})
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

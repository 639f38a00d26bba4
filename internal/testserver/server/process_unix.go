//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged is how a program that refuses to run as root is started.
func unprivileged() *syscall.SysProcAttr {
	attr := ownSession()
	if os.Getuid() == 0 {
		uid, gid := nobody()
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attr
}

// ownSession keeps a terminal's Ctrl-C from the child: the reaper ends it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func nobody() (uid, gid int) {
	uid, gid = 65534, 65534
	if u, err := user.Lookup("nobody"); err == nil {
		if id, err := strconv.Atoi(u.Uid); err == nil {
			uid = id
		}
		if id, err := strconv.Atoi(u.Gid); err == nil {
			gid = id
		}
	}
	return uid, gid
}

// giveAway hands a file or a whole folder to the unprivileged user, where we are root.
func giveAway(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid := nobody()
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// exited reports whether a child has ended, and reaps it.
func exited(pid int, wait bool) bool {
	options := syscall.WNOHANG
	if wait {
		options = 0
	}
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, options, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return err != nil || got == pid
	}
}

func sendSignal(pid int, name string) error {
	signals := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "QUIT": syscall.SIGQUIT, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	if err := syscall.Kill(pid, signals[name]); err != nil {
		return fmt.Errorf("send SIG%s to %d: %w", name, pid, err)
	}
	if name == "STOP" || name == "CONT" {
		for _, child := range children(pid) {
			_ = syscall.Kill(child, signals[name]) // it may have ended
		}
	}
	return nil
}

// children are the processes that a server has started: Postgres answers from
// one for each connection, each in a session of its own. None where there is no
// Linux /proc.
func children(pid int) []int {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

// lock takes an exclusive lock on a file that it makes, waiting for it. It
// lasts until the file is closed, at the latest until the process ends.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// tryLock is lock without the waiting: nil where somebody else holds it.
func tryLock(path string) *os.File {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close()
		return nil
	}
	return file
}

//go:build !unix

package server

import (
	"errors"
	"os"
	"syscall"
)

var errNoUnix = errors.New("servers are started on Unix only; name running ones by DUECLAIM_TEST_…")

func unprivileged() *syscall.SysProcAttr { return nil }
func ownSession() *syscall.SysProcAttr   { return nil }
func giveAway(string) error              { return errNoUnix }
func exited(int, bool) bool              { return true }
func sendSignal(int, string) error       { return errNoUnix }
func lock(string) (*os.File, error)      { return nil, errNoUnix }
func tryLock(string) *os.File            { return nil }

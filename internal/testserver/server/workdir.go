package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const workPrefix = "dueclaim-test-"

// reaperScript waits until its input ends, which is when the parent has ended
// in whatever way, then ends the servers whose "SIGNAL PID" it finds and
// removes the folder. It ignores the signals that a terminal sends to all. A
// zombie (of an init that is slow to collect them) counts as ended.
const reaperScript = `
trap '' INT QUIT TERM HUP
cat >/dev/null
each() { for f in "$1"/*/server.pid; do [ -f "$f" ] && read -r sig pid <"$f" && [ -n "$pid" ] && "$2" ; done; }
end() { kill -CONT "$pid"; kill "-$sig" "$pid"; }
force() { kill -KILL "$pid"; }
alive() { kill -0 "$pid" && ! grep -q '^State:.*Z' "/proc/$pid/status" && living=1; }
each "$1" end
n=0
while [ $n -lt 50 ]; do living=; each "$1" alive; [ -z "$living" ] && break; sleep 0.1; n=$((n+1)); done
each "$1" force
n=0
while [ $n -lt 50 ] && ! rm -rf "$1"; do sleep 0.1; n=$((n+1)); done
`

// workRoot is this process's folder for all its servers.
var workRoot = sync.OnceValues(func() (string, error) {
	base, err := workBase()
	if err != nil {
		return "", err
	}
	removeStale(base)
	root, err := os.MkdirTemp(base, workPrefix)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(root, 0o711); err != nil { // servers that run as another user pass through
		return "", err
	}
	held, err := lock(filepath.Join(root, "lock"))
	if err != nil {
		return "", err
	}
	keepOpen = append(keepOpen, held)
	return root, startReaper(root)
})

func startReaper(root string) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command("/bin/sh", "-c", reaperScript, "dueclaim-reaper", root)
	cmd.Stdin, cmd.SysProcAttr = in, ownSession()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("server: start the reaper: %w", err)
	}
	keepOpen = append(keepOpen, out)
	return cmd.Process.Release()
}

// keepOpen holds what must stay open until this process ends, out of the
// garbage collector's reach: the folder's lock and the pipe on which the
// reaper waits.
var keepOpen []*os.File

// workBase is the temp folder, or /tmp where the former can't be reached by
// the user that Postgres runs as.
func workBase() (string, error) {
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if os.Getuid() != 0 || reachable(base) {
			return base, nil
		}
	}
	return "", fmt.Errorf("server: no temp folder that others can pass: %s, /tmp, /var/tmp", os.TempDir())
}

// reachable says whether every user may pass through dir and its parents.
func reachable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// removeStale removes what runs left behind whose reaper was killed too. A
// live run holds a lock; the minute is for one that is just about to take it.
func removeStale(base string) {
	dirs, err := filepath.Glob(filepath.Join(base, workPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if held := tryLock(filepath.Join(dir, "lock")); held != nil {
			// What another user left can't be removed; it is not ours to complain about.
			_ = os.RemoveAll(dir)
			_ = held.Close()
		}
	}
}

// newDir makes a folder below workRoot that belongs to the server's user.
func newDir(name string, forOther bool) (string, error) {
	root, err := workRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(root, name+"-")
	if err == nil && forOther {
		err = giveAway(dir)
	}
	return dir, err
}

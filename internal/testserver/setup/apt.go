package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// packages are the Debian and Ubuntu packages that bring each kind.
var packages = map[server.Kind]string{
	server.Redis:     "redis-server",
	server.MariaDB:   "mariadb-server",
	server.Postgres:  "postgresql",
	server.PgBouncer: "pgbouncer",
}

// installMissing installs the packages of missing servers where it may, and
// says why where not. What fails stays missing; the tests report it.
func installMissing(ctx context.Context) {
	var names []string
	for _, k := range server.Kinds() {
		if name, ok := packages[k]; ok && wanted(k) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		fmt.Printf("setup: not installing %s: no apt-get here; install them by hand, or name running servers (compose.yaml)\n", strings.Join(names, ", "))
		return
	}
	if os.Getuid() != 0 {
		fmt.Printf("setup: not installing %s: not root; run: sudo apt-get install --no-install-recommends %s\n", strings.Join(names, ", "), strings.Join(names, " "))
		return
	}
	if err := step(ctx, "update the package lists", nil, "apt-get", aptArgs("update")...); err != nil {
		fmt.Printf("setup: %v\n", err)
	}
	if err := install(ctx, names); err == nil {
		return
	}
	// Together they failed; one that can't be had must not keep out the others.
	for _, name := range names {
		if err := install(ctx, []string{name}); err != nil {
			fmt.Printf("setup: %v\n", err)
		}
	}
}

// install never removes a package: a server that somebody uses here stays.
func install(ctx context.Context, names []string) error {
	args := append(aptArgs("install"), "--no-install-recommends", "--no-remove")
	return step(ctx, "install "+strings.Join(names, " "), []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", append(args, names...)...)
}

// aptArgs are the options for a run with nobody at the keyboard, on a machine
// where another run may hold the lock, behind a network that may hang.
func aptArgs(command string) []string {
	return []string{"-y", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30", command}
}

// step runs one command and says so, with a sign of life every ten seconds.
// The end of its output becomes part of the error.
func step(ctx context.Context, what string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	fmt.Printf("setup: %s …\n", what)
	began := time.Now()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second // apt's helpers may hold the pipe
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Printf("setup: %s … %.0f s\n", what, time.Since(began).Seconds())
		case err := <-done:
			if err != nil {
				text := strings.TrimSpace(out.String())
				return fmt.Errorf("%s failed after %.1f s: %w: %s", what, time.Since(began).Seconds(), err, text[max(0, len(text)-600):])
			}
			fmt.Printf("setup: %s: done in %.1f s\n", what, time.Since(began).Seconds())
			return nil
		}
	}
}

// quiet runs one short command.
func quiet(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// Package program runs an example as its user would, as a process of its own, in
// the example's tests.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

const variable = "DUECLAIM_EXAMPLE_PROGRAM"

// Main is for TestMain: it builds the example in the test's folder, without the
// tests' own instruments (such as -race), and runs the tests.
func Main(m *testing.M) {
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	path := filepath.Join(folder, "program")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Stderr = os.Stderr
	status := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
	} else if err := os.Setenv(variable, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		status = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// Running is a program that runs.
type Running struct {
	Cmd            *exec.Cmd
	stdout, stderr output
}

// output is a buffer that may be read while it is written to.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Shown tells whether the program has written text by now.
func (r *Running) Shown(text string) bool {
	return strings.Contains(r.stdout.String(), text) || strings.Contains(r.stderr.String(), text)
}

// Start starts the program. It is killed when the test ends.
func Start(t *testing.T, args ...string) *Running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	r := &Running{Cmd: exec.CommandContext(ctx, os.Getenv(variable), args...)}
	r.Cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	r.Cmd.Stdout, r.Cmd.Stderr = &r.stdout, &r.stderr
	require.NoError(t, r.Cmd.Start())
	return r
}

// Wait waits until the program and all its workers have ended, as they share its
// standard error, and returns the program's exit status.
func (r *Running) Wait(t *testing.T) int {
	t.Helper()
	err := r.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return r.Cmd.ProcessState.ExitCode()
}

// Run runs the program to its end and logs what it wrote if the test fails.
func Run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	r := Start(t, args...)
	status = r.Wait(t)
	stdout, stderr = r.stdout.String(), r.stderr.String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: status %d\n%s\n%s", strings.Join(args, " "), status, stdout, stderr)
		}
	})
	return status, stdout, stderr
}

// MySQLURL turns a DSN of go-sql-driver into the URL that the examples take.
func MySQLURL(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	u := url.URL{Scheme: "mysql", Host: c.Addr, Path: "/" + c.DBName, User: url.User(c.User)}
	if c.Passwd != "" {
		u.User = url.UserPassword(c.User, c.Passwd)
	}
	return u.String()
}

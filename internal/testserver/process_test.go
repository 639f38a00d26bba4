package testserver_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// role makes this test binary play another part when it runs itself.
const role = "DUECLAIM_TESTSERVER_ROLE"

// again prepares a run of one test of this binary as a process of its own.
func again(t *testing.T, test string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), append(env, role+"="+test)...)
	return cmd
}

// TestHoldServers is no test: it is the process that is killed.
func TestHoldServers(t *testing.T) {
	if os.Getenv(role) != t.Name() {
		return
	}
	private := testserver.Private(t, server.Postgres, server.Options{})
	stopped := testserver.PrivateRedis(t)
	stopped.Stop()
	for _, line := range []string{strings.TrimPrefix(testserver.Redis(t), "redis://"), private.Addr(), stopped.Addr()} {
		_, _ = os.Stdout.WriteString("ADDR " + strings.TrimSuffix(line, "/0") + "\n")
	}
	_, _ = os.Stdout.WriteString("READY\n")
	select {}
}

func TestServersEndAndTheirFolderGoesWhenTheTestBinaryIsKilled(t *testing.T) {
	temp, err := os.MkdirTemp("/tmp", "held-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(temp, 0o755))
	defer os.RemoveAll(temp)
	cmd := again(t, "TestHoldServers", "TMPDIR="+temp, "DUECLAIM_TEST_REDIS=")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var addrs []string
	for lines := bufio.NewScanner(pipe); lines.Scan() && lines.Text() != "READY"; {
		if addr, ok := strings.CutPrefix(lines.Text(), "ADDR "); ok {
			addrs = append(addrs, addr)
		}
	}
	require.Len(t, addrs, 3)
	for _, addr := range addrs {
		require.True(t, answers(addr), addr)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(temp, "*"))
		return err == nil && len(left) == 0 && !answers(addrs[0]) && !answers(addrs[1]) && !answers(addrs[2])
	}, 15*time.Second, 50*time.Millisecond)
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		err = conn.Close()
	}
	return err == nil
}

// TestWantRedis is no test: it plays a test whose server can't be had.
func TestWantRedis(t *testing.T) {
	if os.Getenv(role) == t.Name() {
		testserver.PrivateRedis(t)
	}
}

func TestAMissingServerSkipsInAFixedFormAndFailsWhereItIsRequired(t *testing.T) {
	// A server that can't start stands for one that isn't there: the folders of system programs are always searched.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis-server"), []byte("#!/bin/sh\necho out of order\nexit 1\n"), 0o755))
	run := func(env ...string) (string, error) {
		out, err := again(t, "TestWantRedis", append(env, "PATH="+dir+":"+os.Getenv("PATH"))...).CombinedOutput()
		return string(out), err
	}
	out, err := run("CI=", "DUECLAIM_REQUIRE=")
	require.NoError(t, err)
	require.Contains(t, out, "NOT tested: redis: ")
	require.Contains(t, out, "out of order", "the end of the log")
	require.Contains(t, out, "--- SKIP")
	for _, env := range []string{"CI=true", "DUECLAIM_REQUIRE=mariadb,redis"} {
		out, err = run("CI=", "DUECLAIM_REQUIRE=", env)
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), env)
		require.Contains(t, out, "redis is required, but can't be had")
	}
}

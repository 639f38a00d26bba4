package sqliteclaim_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// The test binary is also the other processes: with this variable set it runs
// one of the children below on the file that is named.
const childVariable = "DUECLAIM_SQLITECLAIM_CHILD"

func TestMain(m *testing.M) {
	child, path, ok := strings.Cut(os.Getenv(childVariable), ":")
	if !ok {
		os.Exit(m.Run())
	}
	run := map[string]func(context.Context, string) error{
		"migrate": childMigrates, "claim": childClaims, "write": childWrites, "lock": childLocks,
	}[child]
	if err := run(context.Background(), path); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// start runs a child; its lines can be read. It is killed with the test at the
// latest.
func start(t *testing.T, name, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name+":"+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{cmd, bufio.NewScanner(out)}
}

// line returns the next line, "" at the end.
func (c *child) line() string {
	if c.lines.Scan() {
		return c.lines.Text()
	}
	return ""
}

// rest returns all further lines of a child that ends well.
func (c *child) rest(t *testing.T) []string {
	t.Helper()
	var lines []string
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	require.NoError(t, c.cmd.Wait(), "child said: %s", strings.Join(lines, "\n"))
	return lines
}

func openChild(ctx context.Context, path string) (*sqliteclaim.Store, error) {
	s, err := sqliteclaim.Open(ctx, path, sqliteclaim.Options{})
	if err != nil {
		return nil, err
	}
	return s, insist(func() error { return s.Migrate(ctx) })
}

func childMigrates(ctx context.Context, path string) error {
	s, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	return s.Close()
}

func TestProcessesMigrateANewFileAtOnce(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for range 3 {
		path := file(t)
		children := make([]*child, 6)
		for i := range children {
			children[i] = start(t, "migrate", path)
		}
		for _, c := range children {
			require.Empty(t, c.rest(t))
		}
		insert(t, open(t, path, sqliteclaim.Options{}), "c", "a")
	}
}

// childClaims claims everything, in batches that the others want as well, and
// prints what it was granted.
func childClaims(ctx context.Context, path string) error {
	s, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	holder := fmt.Sprint("process-", os.Getpid())
	all := ids(contended)
	for i := 0; i < len(all); i += 50 {
		claimed, err := claimInsisting(ctx, s, all[i:i+50], lease(fmt.Sprint(holder, "-", i), 1, 60))
		if err != nil {
			return err
		}
		for _, c := range claimed {
			if c.Verdict == core.Granted {
				fmt.Println(c.ID)
			} else if c.Verdict != core.Held {
				return fmt.Errorf("id %s: verdict %s, want Granted or Held", c.ID, c.Verdict)
			}
		}
	}
	return s.Close()
}

const contended = 1000

func TestProcessesThatContendHaveOneWinnerForEachTask(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	insert(t, open(t, path, sqliteclaim.Options{}), "c", ids(contended)...)
	children := make([]*child, 4)
	for i := range children {
		children[i] = start(t, "claim", path)
	}
	winners := map[string]int{}
	for _, c := range children {
		for _, id := range c.rest(t) {
			winners[id]++
		}
	}
	require.Len(t, winners, contended)
	for id, n := range winners {
		require.Equal(t, 1, n, "winners of %s", id)
	}
}

// childWrites inserts, claims and settles without end, and prints the number of
// each insert that it got an answer for.
func childWrites(ctx context.Context, path string) error {
	s, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		id := core.ID(fmt.Sprintf("%d-%d", os.Getpid(), n))
		task := core.Task{ID: id, Payload: make([]byte, 20_000), Due: noon}
		if err := insist(func() error { return s.Insert(ctx, call(string(id)), []core.Task{task}) }); err != nil {
			return err
		}
		fmt.Println(id)
		if n%2 == 0 {
			continue
		}
		claimed, err := claimInsisting(ctx, s, []core.ID{id}, lease(string(id), 1, 60))
		if err != nil {
			return err
		}
		settlement := core.Settlement{Grant: claimed[0].Grant, Outcome: core.Done}
		if err := insist(func() error { return s.Settle(ctx, noon, []core.Settlement{settlement}) }); err != nil {
			return err
		}
	}
}

func TestKilledProcessesLeaveAUsableFileWithAllThatWasAnswered(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	answered := map[string]bool{}
	for round := range 4 {
		children := []*child{start(t, "write", path), start(t, "write", path)}
		for _, c := range children {
			for range 20 + 7*round {
				answered[c.line()] = true
			}
			require.NoError(t, c.cmd.Process.Signal(syscall.SIGKILL))
			for id := c.line(); id != ""; id = c.line() {
				answered[id] = true
			}
			_ = c.cmd.Wait()
		}
		s := open(t, path, sqliteclaim.Options{})
		require.Equal(t, []string{"ok"}, column(t, s.DB(), "PRAGMA integrity_check"))
		kept := map[string]bool{}
		for _, id := range column(t, s.DB(), "SELECT id FROM dueclaim_tasks") {
			kept[id] = true
		}
		for id := range answered {
			require.True(t, kept[id], "%s was answered and is lost", id)
		}
		insert(t, s, "usable", core.ID(fmt.Sprint("usable-", round)))
	}
}

// childLocks holds the write lock until it is killed.
func childLocks(ctx context.Context, path string) error {
	s, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	if _, err := s.DB().BeginTx(ctx, nil); err != nil {
		return err
	}
	fmt.Println("locked")
	select {}
}

func TestCallEndsSoonAfterItsContextWhileAnotherProcessHoldsTheLock(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	s := open(t, path, sqliteclaim.Options{})
	own, err := sqliteclaim.New(usersDB(t, path), sqliteclaim.Options{})
	require.NoError(t, err)
	insert(t, s, "c", "a")
	g := grant(t, s, lease("h", 1, 10), "a")
	locker := start(t, "lock", path)
	require.Equal(t, "locked", locker.line())

	for name, f := range map[string]func(ctx context.Context, s *sqliteclaim.Store) error{
		"insert": func(ctx context.Context, s *sqliteclaim.Store) error {
			return s.Insert(ctx, call("d"), []core.Task{{ID: "b", Due: noon}})
		},
		"claim": func(ctx context.Context, s *sqliteclaim.Store) error {
			_, err := s.Claim(ctx, []core.ID{"a"}, lease("i", 20, 30))
			return err
		},
		"settle": func(ctx context.Context, s *sqliteclaim.Store) error {
			return s.Settle(ctx, noon, []core.Settlement{{Grant: g[0], Outcome: core.Done}})
		},
		"extend": func(ctx context.Context, s *sqliteclaim.Store) error { return s.Extend(ctx, g, at(90)) },
	} {
		for kind, s := range map[string]*sqliteclaim.Store{"opened": s, "user's": own} {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			began := time.Now()
			err := f(ctx, s)
			require.ErrorIs(t, err, context.DeadlineExceeded, "%s, %s", name, kind)
			require.Less(t, time.Since(began), 3*time.Second, "%s, %s: the busy time-out is 10 s", name, kind)
			cancel()
		}
	}
	entries, err := s.Waiting(t.Context(), at(20), core.Entry{}, at(60), 10)
	require.NoError(t, err, "reading needs no lock")
	require.Len(t, entries, 1)

	require.NoError(t, locker.cmd.Process.Kill())
	_ = locker.cmd.Wait()
	require.NoError(t, s.Extend(t.Context(), g, at(90)), "the dead process's lock is gone, and nothing else happened")
}

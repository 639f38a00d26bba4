package sqliteclaim_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

func TestPathIsTakenAsItIs(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for _, name := range []string{
		"with space.db", "what?.db", "a?mode=memory&cache=shared", "hash#tag.db", "100%.db", "%3Fmode=ro", "a&b=c;d.db",
		"ключ-任务.db", "quote'\".db", "back\\slash.db", "plus+.db", "file:x.db", "no-extension", "?", "x?_pragma=journal_mode(DELETE)",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			s := open(t, path, sqliteclaim.Options{})
			insert(t, s, "c", "a")
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.True(t, info.Mode().IsRegular())
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, e := range entries {
				require.True(t, strings.HasPrefix(e.Name(), name), "another file: %s", e.Name())
			}
			for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000", "foreign_keys": "1"} {
				require.Equal(t, []string{want}, column(t, s.DB(), "PRAGMA "+pragma), pragma)
			}
			insert(t, open(t, path, sqliteclaim.Options{}), "d", "b")
			require.Equal(t, []string{"a", "b"}, column(t, s.DB(), "SELECT id FROM dueclaim_tasks ORDER BY id"))
		})
	}
}

func TestRelativePathStaysThatFileWhenTheProcessMoves(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := open(t, "tasks.db", sqliteclaim.Options{})
	t.Chdir(t.TempDir())
	insert(t, s, "c", "a")
	require.FileExists(t, filepath.Join(dir, "tasks.db"))
	require.Equal(t, []string{"a"}, column(t, s.DB(), "SELECT id FROM dueclaim_tasks"))
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a database, but a text\n", 100)), 0o600))
	for name, c := range map[string]struct {
		path    string
		options sqliteclaim.Options
		want    string
		is      error
	}{
		"in memory":      {path: ":memory:", want: "claim.NewMemory", is: core.ErrInvalid},
		"URI":            {path: "file:tasks.db?mode=memory", want: "not a URI", is: core.ErrInvalid},
		"empty":          {path: "", want: "path is empty", is: core.ErrInvalid},
		"NUL":            {path: filepath.Join(dir, "a\x00b"), want: "NUL", is: core.ErrInvalid},
		"no directory":   {path: filepath.Join(dir, "missing", "tasks.db"), want: "directory is not there", is: os.ErrNotExist},
		"a directory":    {path: dir, want: "not a regular file", is: core.ErrInvalid},
		"not a database": {path: text, want: "not a SQLite database"},
		"quote in table": {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Table: `x"y`}, want: "table name", is: core.ErrInvalid},
		"NUL in table":   {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Table: "x\x00"}, want: "table name", is: core.ErrInvalid},
		"schema":         {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Table: "aux.x"}, want: "without a schema", is: core.ErrInvalid},
		"NUL in queue":   {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Queue: "q\x00"}, want: "queue name", is: core.ErrInvalid},
		"queue too long": {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Queue: strings.Repeat("q", 101)}, want: "queue name", is: core.ErrInvalid},
		"table too long": {path: filepath.Join(dir, "t.db"), options: sqliteclaim.Options{Table: strings.Repeat("t", 55)}, want: "at most 54 bytes", is: core.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqliteclaim.Open(t.Context(), c.path, c.options)
			require.ErrorContains(t, err, c.want)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			} else {
				var driver *sqlite.Error
				require.ErrorAs(t, err, &driver)
			}
		})
	}
	content, err := os.ReadFile(text)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(content), "not a database"), "the file is as it was")
}

// Root may write everywhere, so another user tries.
func TestOpenRefusesWhatItCannotWrite(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for name, rights := range map[string]struct {
		file, dir os.FileMode
	}{
		"file":      {0o444, 0o777},
		"directory": {0o666, 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "sqliteclaim")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
			path := filepath.Join(dir, "tasks.db")
			s, err := sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Migrate(t.Context()))
			_, err = s.DB().ExecContext(t.Context(), "PRAGMA user_version = 77")
			require.NoError(t, err)
			require.NoError(t, s.Close()) // which removes the -wal and -shm files
			s, err = sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"77"}, column(t, s.DB(), "PRAGMA user_version"), "Open changes nothing")
			require.NoError(t, s.Close())
			require.NoError(t, os.Chmod(path, rights.file))
			require.NoError(t, os.Chmod(dir, rights.dir))

			binary := os.Args[0]
			cmd := exec.Command(binary)
			if os.Getuid() == 0 {
				// The test binary may be where that user can't go.
				copied := filepath.Join(t.TempDir(), "child")
				data, err := os.ReadFile(binary)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(copied, data, 0o755))
				for at := filepath.Dir(copied); at != os.TempDir() && len(at) > 1; at = filepath.Dir(at) {
					require.NoError(t, os.Chmod(at, 0o755))
				}
				cmd = exec.Command(copied)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			cmd.Env = append(os.Environ(), childVariable+"=migrate:"+path)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), "read-only")
		})
	}
}

func TestNewSaysWhatToSet(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for name, c := range map[string]struct {
		dsn  string
		want []string
	}{
		"nothing set": {"file:%s", []string{"journal_mode(WAL)", "busy_timeout(5000)"}},
		"normal":      {"file:%s?_pragma=busy_timeout(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)", []string{"synchronous(FULL)"}},
		"in memory":   {":memory:?_pragma=busy_timeout(1)", []string{"in memory", "claim.NewMemory"}},
		"shared":      {"file:x?mode=memory&cache=shared", []string{"in memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open("sqlite", strings.ReplaceAll(c.dsn, "%s", file(t)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			_, err = sqliteclaim.New(db, sqliteclaim.Options{})
			require.ErrorIs(t, err, core.ErrInvalid)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NoError(t, db.Ping(), "the user's database is left open")
		})
	}
	db := usersDB(t, file(t))
	s, err := sqliteclaim.New(db, sqliteclaim.Options{})
	require.NoError(t, err)
	require.Same(t, db, s.DB())
	require.NoError(t, s.Close())
	require.NoError(t, db.Ping(), "Close leaves the user's database open")
}

func TestMissingTableNamesMigrate(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s, err := sqliteclaim.Open(t.Context(), file(t), sqliteclaim.Options{Table: "jobs"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	ctx := t.Context()
	_, claimErr := s.Claim(ctx, ids(1), lease("h", 1, 2))
	_, cancelErr := s.Cancel(ctx, core.Call{Now: noon}, ids(1))
	_, waitingErr := s.Waiting(ctx, noon, core.Entry{}, noon, 1)
	for call, err := range map[string]error{
		"insert": s.Insert(ctx, call("c"), []core.Task{{ID: "a", Due: noon}}), "claim": claimErr, "cancel": cancelErr, "waiting": waitingErr,
		"extend": s.Extend(ctx, []core.Grant{{ID: "a"}}, noon),
	} {
		require.ErrorContains(t, err, "sqliteclaim: "+call+": table jobs is missing or has another shape: run Migrate: ")
		var driver *sqlite.Error
		require.ErrorAs(t, err, &driver)
	}
}

func TestMigrateLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	s, err := sqliteclaim.Open(t.Context(), path, sqliteclaim.Options{Table: "jobs"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.DB().ExecContext(t.Context(), "CREATE TABLE Jobs (x)")
	require.NoError(t, err)
	require.ErrorContains(t, s.Migrate(t.Context()), "not as Migrate makes it")

	s = open(t, path, sqliteclaim.Options{})
	require.NoError(t, s.Migrate(t.Context()), "twice")
	_, err = s.DB().ExecContext(t.Context(), "UPDATE dueclaim_tasks_schema SET version = 99")
	require.NoError(t, err)
	require.ErrorContains(t, s.Migrate(t.Context()), "made by a later dueclaim")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Migrate(ctx), context.Canceled)
	_, err = sqliteclaim.Open(ctx, path, sqliteclaim.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestViewShowsTimes(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	s := open(t, file(t), sqliteclaim.Options{})
	insert(t, s, "c", "a")
	grant(t, s, lease("h", 1, 10), "a")
	require.Equal(t, []string{"a|running|2030-01-01T12:00:00.000Z|2030-01-01T12:00:10.000Z|7"},
		column(t, s.DB(), "SELECT concat_ws('|', id, status, due, lease_until, payload_bytes) FROM dueclaim_tasks_view"))
}

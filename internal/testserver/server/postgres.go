package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func postgresRecipe() recipe {
	return recipe{
		find: findPostgres,
		initData: func(b Binary, dir string) error {
			argv := append(b.Init, "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir, cmd.SysProcAttr = dir, unprivileged()
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out))
			}
			return nil
		},
		clone: func(b Binary, l launch) error {
			initdb, err := filepath.EvalSymlinks(b.Init[0]) // the two stand side by side
			if err != nil {
				return err
			}
			argv := []string{filepath.Join(filepath.Dir(initdb), "pg_basebackup"), "-d", l.Upstream, "-D", filepath.Join(l.dir, "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync"}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir, cmd.SysProcAttr = l.dir, unprivileged()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out))
			}
			return nil
		},
		argv: func(b Binary, l launch) ([]string, error) {
			args := append(b.Argv, "-D", filepath.Join(l.dir, "data"), "-p", strconv.Itoa(l.port),
				"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=500", "-c", "shared_buffers=64MB")
			if l.Durable {
				return args, nil
			}
			// synchronous_commit stays on: a killed server then loses no commit.
			return append(args, "-c", "fsync=off", "-c", "full_page_writes=off"), nil
		},
		ready:        func(addr string) error { return greetPostgres(addr, "postgres") },
		unprivileged: true,
		endWith:      "QUIT", // immediate shutdown; SIGKILL would leave a shared memory segment behind
		scheme:       "postgres",
	}
}

func findPostgres() (Binary, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return Binary{}, err
	}
	major := func(dir string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return major(b) - major(a) })
	if path, err := lookPath("postgres"); err == nil {
		dirs = append([]string{filepath.Dir(path)}, dirs...)
	}
	for _, dir := range dirs {
		path, initdb := filepath.Join(dir, "postgres"), filepath.Join(dir, "initdb")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if _, err := os.Stat(initdb); err == nil {
			return Binary{Kind: Postgres, Path: path, Argv: []string{path}, Init: []string{initdb}}, nil
		}
	}
	return Binary{}, errors.New("no postgres and initdb in PATH nor in /usr/lib/postgresql/*/bin")
}

func pgbouncerRecipe() recipe {
	return recipe{
		find: func() (Binary, error) {
			path, err := lookPath("pgbouncer")
			return Binary{Kind: PgBouncer, Path: path, Argv: []string{path}}, err
		},
		argv: func(b Binary, l launch) ([]string, error) {
			ini := filepath.Join(l.dir, "pgbouncer.ini")
			text, err := pgbouncerINI(l)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(ini, []byte(text), 0o600); err != nil {
				return nil, err
			}
			return append(b.Argv, ini), giveAway(ini)
		},
		ready:        func(addr string) error { return greetPostgres(addr, "pgbouncer") },
		unprivileged: true,
		endWith:      "KILL",
		scheme:       "postgres",
	}
}

// pgbouncerINI is a pooler in transaction mode before the server of
// l.Upstream, for all of that server's databases.
func pgbouncerINI(l launch) (string, error) {
	u, err := url.Parse(l.Upstream)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("pgbouncer: the upstream must be a postgres:// URL with a host")
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	target := "host=" + quote(u.Hostname())
	if u.Port() != "" {
		target += " port=" + u.Port()
	}
	target += " user=" + quote(u.User.Username())
	if password, ok := u.User.Password(); ok {
		target += " password=" + quote(password)
	}
	return fmt.Sprintf(`[databases]
* = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
admin_users = pgbouncer
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`, target, l.port), nil
}

// greetPostgres asks to log in and reads the kind of the first answer: R (an
// authentication step) means that the server takes work. While it starts it
// answers E.
func greetPostgres(addr, database string) error {
	conn, err := dialReady(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := "\x00\x03\x00\x00user\x00" + database + "\x00database\x00" + database + "\x00\x00"
	packet := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	if _, err := conn.Write(append(packet, body...)); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if answer[0] != 'R' {
		return fmt.Errorf("login answered %q", answer)
	}
	return nil
}

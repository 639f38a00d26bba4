package server

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func mariadbRecipe() recipe {
	return recipe{
		find: func() (Binary, error) {
			path, err := lookPath("mariadbd")
			if err != nil {
				return Binary{}, err
			}
			install, err := lookPath("mariadb-install-db")
			return Binary{Kind: MariaDB, Path: path, Argv: []string{path, "--no-defaults"}, Init: []string{install}}, err
		},
		initData: func(b Binary, dir string) error {
			return run(append(append(b.Init, "--no-defaults", "--datadir="+filepath.Join(dir, "data"),
				"--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=8M"), asRoot()...))
		},
		argv: func(b Binary, l launch) ([]string, error) {
			return append(mysqlArgs(b, l), "--innodb-log-file-size=8M"), nil
		},
		ready:   greetMySQL,
		endWith: "KILL",
		scheme:  "mysql",
	}
}

func mysqlRecipe() recipe {
	return recipe{
		find: findMySQL,
		initData: func(b Binary, dir string) error {
			// A fresh MySQL knows root@localhost only, and 127.0.0.1 need not resolve to that.
			grants := filepath.Join(dir, "grants.sql")
			text := "CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
			if err := os.WriteFile(grants, []byte(text), 0o644); err != nil {
				return err
			}
			return run(append(append(b.Argv, "--initialize-insecure", "--init-file="+grants, "--datadir="+filepath.Join(dir, "data"),
				"--innodb-redo-log-capacity=8M"), asRoot()...))
		},
		argv: func(b Binary, l launch) ([]string, error) {
			return append(mysqlArgs(b, l), "--mysqlx=OFF", "--innodb-redo-log-capacity=32M", "--secure-file-priv=NULL"), nil
		},
		ready:   greetMySQL,
		endWith: "KILL",
		scheme:  "mysql",
	}
}

// mysqlArgs are the settings that MariaDB and MySQL share. Commits reach the
// operating system (2, not 0), so that a killed server loses none of them;
// only Durable makes them survive the machine.
func mysqlArgs(b Binary, l launch) []string {
	args := append(b.Argv, asRoot()...)
	args = append(args,
		"--datadir="+filepath.Join(l.dir, "data"), "--socket="+filepath.Join(l.dir, "s.sock"), "--pid-file="+filepath.Join(l.dir, "pid"),
		"--tmpdir="+l.dir, // a server that starts deletes the temporary tables of others in its tmpdir
		"--port="+strconv.Itoa(l.port), "--bind-address=127.0.0.1", "--max-connections=1000", "--performance-schema=OFF",
		"--character-set-server=utf8mb4", "--skip-log-bin", "--innodb-buffer-pool-size=64M")
	if l.Durable {
		return append(args, "--innodb-flush-log-at-trx-commit=1")
	}
	return append(args, "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--innodb-flush-method=nosync")
}

func findMySQL() (Binary, error) {
	root := SidRoot(MySQL)
	usr := filepath.Join(root, "usr")
	if path, run, ok := unpacked(root, "usr/sbin/mysqld", usr+"/lib/mysql/private"); ok {
		return Binary{Kind: MySQL, Path: path, Argv: append(run,
			"--no-defaults", "--basedir="+usr, "--lc-messages-dir="+usr+"/share/mysql",
			"--character-sets-dir="+usr+"/share/mysql/charsets", "--plugin-dir="+usr+"/lib/mysql/plugin",
		)}, nil
	}
	path, err := lookPath("mysqld")
	if err == nil {
		// MariaDB installs itself under this name as well.
		out, runErr := exec.Command(path, "--no-defaults", "--version").CombinedOutput()
		if runErr == nil && !strings.Contains(string(out), "MariaDB") {
			return Binary{Kind: MySQL, Path: path, Argv: []string{path, "--no-defaults"}}, nil
		}
		err = fmt.Errorf("%s is not Oracle's", path)
	}
	return Binary{}, notFetched(MySQL, err)
}

// asRoot tells MariaDB and MySQL that to run as root is meant.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// greetMySQL reads the server's first packet: protocol version 10, or an error.
func greetMySQL(addr string) error {
	conn, err := dialReady(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	if head[4] != 10 {
		return fmt.Errorf("greeted with protocol version %d", head[4])
	}
	return nil
}

// run runs a program that prepares something. What it said becomes the error.
func run(argv []string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out))
	}
	return nil
}

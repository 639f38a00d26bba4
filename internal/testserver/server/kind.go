package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Kind names a server program. Its text is the name used in DUECLAIM_REQUIRE
// and in "NOT tested: <kind>: <reason>".
type Kind string

// The kinds that this package can start.
const (
	Redis     Kind = "redis"
	Valkey    Kind = "valkey"
	MariaDB   Kind = "mariadb"
	MySQL     Kind = "mysql" // Oracle's, not MariaDB under its old name
	Postgres  Kind = "postgres"
	PgBouncer Kind = "pgbouncer"
)

// Kinds returns every kind, in the order in which they are reported.
func Kinds() []Kind { return []Kind{Redis, Valkey, MariaDB, MySQL, Postgres, PgBouncer} }

// Binary is a server program as it was found on this machine.
type Binary struct {
	Kind Kind
	Path string   // the program, for people
	Argv []string // how to run it: Path, or a loader and what it needs
	Init []string // how to run the program that prepares a data folder, if that is another one
}

// Version runs the program and returns its version number, "?" where it tells none.
func (b Binary) Version() string {
	out, err := exec.Command(b.Argv[0], append(b.Argv[1:len(b.Argv):len(b.Argv)], "--version")...).CombinedOutput()
	if v := versionNumber.FindString(string(out)); v != "" {
		return v
	}
	return fmt.Sprintf("? (%v)", err)
}

var versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?(-MariaDB)?`)

// recipe is all that differs between the kinds.
type recipe struct {
	find         func() (Binary, error)
	initData     func(b Binary, dir string) error // fills dir/data; nil where a server starts without
	clone        func(b Binary, l launch) error   // fills dir/data as a standby of l.Upstream; nil where there are none
	argv         func(b Binary, l launch) ([]string, error)
	ready        func(addr string) error // nil once the server answers its own protocol
	unprivileged bool                    // refuses to run as root
	endWith      string                  // the signal by which a server is ended for good
	scheme       string                  // of its URL
}

// launch is one start of one server.
type launch struct {
	dir  string // private to the server
	port int
	Options
}

func recipeOf(k Kind) (recipe, error) {
	switch k {
	case Redis:
		return redisRecipe(), nil
	case Valkey:
		return valkeyRecipe(), nil
	case MariaDB:
		return mariadbRecipe(), nil
	case MySQL:
		return mysqlRecipe(), nil
	case Postgres:
		return postgresRecipe(), nil
	case PgBouncer:
		return pgbouncerRecipe(), nil
	}
	return recipe{}, fmt.Errorf("server: unknown kind %q", k)
}

// Find looks for the program of a kind. The error says where it looked.
func Find(k Kind) (Binary, error) {
	r, err := recipeOf(k)
	if err != nil {
		return Binary{}, err
	}
	return r.find()
}

// lookPath is exec.LookPath over PATH and the folders of system programs,
// which an ordinary user's PATH leaves out.
func lookPath(names ...string) (string, error) {
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin")
	for _, name := range names {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no %s in PATH nor in /usr/sbin", strings.Join(names, ", "))
}

// Package parts chooses and opens the backends of the examples from two words of
// a command line: which time index, which claim store. In a program of your own
// this is a few lines, since you know which ones you want; see the files sqlite.go,
// mysql.go, postgres.go and redis.go for how each is opened.
package parts

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Choice says which parts to use. It can be sent to a worker process as JSON.
type Choice struct {
	// Index is "heap" or a redis:// URL.
	Index string
	// Store is "sqlite:PATH", or a mysql:// or postgres:// URL; or "sqlite", for
	// which WithFile finds a path.
	Store string
	// Table and Queue are names for the claim store and the index; workers and
	// producers must agree on them.
	Table, Queue string
}

// Check returns nil, or an error that says what is wrong with the words. It
// connects to nothing. No error of this package shows a password.
func (c Choice) Check() error {
	return errors.Join(c.checkIndex(), c.checkStore())
}

func (c Choice) checkIndex() error {
	if c.Index == "heap" {
		return nil
	}
	if _, err := serverURL(c.Index, "redis", "rediss"); err != nil {
		return fmt.Errorf("index %w; want heap or redis://host:port/0", err)
	}
	return nil
}

func (c Choice) checkStore() error {
	if c.Store == "sqlite" {
		return nil // WithFile finds a path
	}
	if path, ok := c.sqlitePath(); ok {
		if path == "" {
			return errors.New("store sqlite: has no path; want sqlite:PATH")
		}
		return nil
	}
	u, err := serverURL(c.Store, "mysql", "postgres", "postgresql")
	if err == nil && strings.Trim(u.Path, "/") == "" {
		err = fmt.Errorf("%s names no database", u.Redacted())
	}
	if err != nil {
		return fmt.Errorf("store %w; want sqlite, sqlite:PATH, mysql://user:password@host:port/database or postgres://user:password@host:port/database", err)
	}
	return nil
}

// WithFile makes "sqlite" a file in folder; other choices stay as they are.
func (c Choice) WithFile(folder string) Choice {
	if c.Store == "sqlite" {
		c.Store = "sqlite:" + filepath.Join(folder, "tasks.db")
	}
	return c
}

// OnSQLite tells whether the store is a SQLite file.
func (c Choice) OnSQLite() bool { return c.Store == "sqlite" || strings.HasPrefix(c.Store, "sqlite:") }

func (c Choice) sqlitePath() (string, bool) { return strings.CutPrefix(c.Store, "sqlite:") }

// serverURL parses the URL of a server. Its errors leave out what may hold a
// password: net/url's own would show the whole text.
func serverURL(text string, schemes ...string) (*url.URL, error) {
	scheme, _, found := strings.Cut(text, "://")
	if !found {
		if _, server, has := strings.Cut(text, "@"); has { // a driver's own form, with a password perhaps
			return nil, fmt.Errorf("…@%s is no URL", server)
		}
		return nil, fmt.Errorf("%q is unknown", text)
	}
	for _, known := range schemes {
		if scheme != known {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return nil, fmt.Errorf("%s://… is not a URL with a host (a password's special characters must be escaped as %%XX)", scheme)
		}
		return u, nil
	}
	return nil, fmt.Errorf("%s://… is of an unknown kind", scheme)
}

// Names of the two parts for people, without users and passwords.
func (c Choice) String() string {
	name := func(text string) string {
		if text == "heap" || text == "sqlite" || strings.HasPrefix(text, "sqlite:") {
			return text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return "…" // no URL: who knows where in it a password is
		}
		return u.Scheme + "://" + u.Host + u.Path
	}
	return "index " + name(c.Index) + ", store " + name(c.Store)
}

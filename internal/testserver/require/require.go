// Package require reads the environment variables by which a person or CI says
// which servers the tests must have, and which are running already.
package require

import (
	"os"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Kind says whether the environment asks for a kind, so that a missing one is
// a failure and not a skip: DUECLAIM_REQUIRE names it, or CI=true.
func Kind(k server.Kind) bool {
	// Oracle's MySQL and Valkey are not among those of CI: they come from an archive that may be out of reach.
	ofCI := []server.Kind{server.Redis, server.MariaDB, server.Postgres, server.PgBouncer}
	return Named(string(k)) || CI() && slices.Contains(ofCI, k)
}

// Named says whether DUECLAIM_REQUIRE, a comma list, has the name.
func Named(name string) bool {
	list := strings.FieldsFunc(os.Getenv("DUECLAIM_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(list, name)
}

// CI says whether this is a run of continuous integration.
func CI() bool { return os.Getenv("CI") == "true" }

// Variable is the environment variable that names a running server of a kind.
func Variable(k server.Kind) string { return "DUECLAIM_TEST_" + strings.ToUpper(string(k)) }

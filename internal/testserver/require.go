package testserver

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// Required says whether the environment asks for a kind, so that a missing one
// is a failure and not a skip.
func Required(k server.Kind) bool {
	named := strings.FieldsFunc(os.Getenv("DUECLAIM_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains(named, string(k)) {
		return true
	}
	// Oracle's MySQL is not among them: it comes from an archive that may be out of reach.
	return os.Getenv("CI") == "true" && (k == server.Redis || k == server.MariaDB || k == server.Postgres)
}

// missing ends the test because a server can't be had.
func missing(t testing.TB, k server.Kind, err error) {
	t.Helper()
	if Required(k) {
		t.Fatalf("%s is required, but can't be had: %v", k, err)
	}
	t.Skipf("NOT tested: %s: %v", k, err)
}

// variable is the environment variable that names a running server of a kind.
func variable(k server.Kind) string { return "DUECLAIM_TEST_" + strings.ToUpper(string(k)) }

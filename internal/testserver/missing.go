package testserver

import (
	"testing"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// missing ends the test because a server can't be had.
func missing(t testing.TB, k server.Kind, err error) {
	t.Helper()
	if require.Kind(k) {
		t.Fatalf("%s is required, but can't be had: %v", k, err)
	}
	t.Skipf("NOT tested: %s: %v", k, err)
}

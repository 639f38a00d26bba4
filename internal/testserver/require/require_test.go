package require_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

func required() (list []server.Kind) {
	for _, k := range server.Kinds() {
		if require.Kind(k) {
			list = append(list, k)
		}
	}
	return list
}

func TestCIRequiresAllButWhatComesFromAnArchive(t *testing.T) {
	t.Setenv("DUECLAIM_REQUIRE", "")
	t.Setenv("CI", "")
	assert.Empty(t, required())
	t.Setenv("CI", "true")
	assert.Equal(t, []server.Kind{server.Redis, server.MariaDB, server.Postgres, server.PgBouncer}, required())
}

func TestANameIsRequiredAlone(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("DUECLAIM_REQUIRE", "mysql, valkey")
	assert.Equal(t, []server.Kind{server.Valkey, server.MySQL}, required())
	assert.True(t, require.Named("mysql"))
	assert.False(t, require.Named("my"))
}

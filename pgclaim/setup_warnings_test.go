package pgclaim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

func TestSettingsThatLoseCommitsAreWarnings(t *testing.T) {
	t.Parallel()
	durable := testserver.Private(t, server.Postgres, server.Options{Durable: true})
	for _, d := range []driver{native, standard} {
		url := durable.URL()
		warnings, err := d.open(t, url, Options{}).CheckSetup(t.Context())
		require.NoError(t, err)
		assert.Empty(t, warnings, d.name())

		warnings, err = d.open(t, url+"&synchronous_commit=off", Options{}).CheckSetup(t.Context())
		require.NoError(t, err)
		require.Len(t, warnings, 1, d.name())
		assert.Contains(t, warnings[0], "synchronous_commit is off")

		warnings, err = d.open(t, testserver.Postgres(t), Options{}).CheckSetup(t.Context()) // which doesn't sync
		require.NoError(t, err)
		assert.Contains(t, strings.Join(warnings, "\n"), "fsync is off", d.name())
	}
}

func TestAStandbyThatIsNotWaitedForIsAWarning(t *testing.T) {
	t.Parallel()
	url := testserver.PrivatePostgres(t).URL()
	local := native.open(t, url+"&synchronous_commit=local", Options{})
	local.exec(t, "ALTER SYSTEM SET synchronous_standby_names = 's1'")
	local.exec(t, "SELECT pg_reload_conf()")
	resetAfter(t, url, "synchronous_standby_names")
	require.Eventually(t, func() bool { return local.text(t, "SHOW synchronous_standby_names")[0] == "s1" }, 20*time.Second, 10*time.Millisecond)
	warnings, err := local.CheckSetup(t.Context())
	require.NoError(t, err)
	assert.Contains(t, strings.Join(warnings, "\n"), "synchronous_commit is local beside synchronous_standby_names")
}

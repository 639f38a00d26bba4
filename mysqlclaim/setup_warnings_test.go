package mysqlclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestSettingsThatLoseCommitsAreWarnings(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *testserver.Server{
		"mariadb": testserver.PrivateMariaDB, "mysql": testserver.PrivateMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, start(t).URL(), "")
			s := newStore(t, db, Options{})
			for _, set := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog"} {
				_, err := db.ExecContext(t.Context(), "SET GLOBAL "+set+" = 1")
				require.NoError(t, err)
			}
			warnings, err := s.CheckSetup(t.Context())
			require.NoError(t, err)
			assert.Empty(t, warnings)

			_, err = db.ExecContext(t.Context(), "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "SET GLOBAL sync_binlog = 0")
			require.NoError(t, err)
			warnings, err = s.CheckSetup(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, warnings)
			assert.Contains(t, warnings[0], "innodb_flush_log_at_trx_commit is 2")
			if len(warnings) > 1 { // the binary log is on
				assert.Contains(t, warnings[1], "sync_binlog is 0")
			}
		})
	}
}

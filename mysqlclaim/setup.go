package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.SetupChecker = (*Store)(nil)
	_ core.SetupChecker = (*Table)(nil)
)

const setupQuery = "SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR), CAST(@@log_bin AS CHAR), CAST(@@sync_binlog AS CHAR)"

// CheckSetup implements [core.SetupChecker]: it warns of settings with which the
// server may lose what it has acknowledged.
func (s *Store) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := checkSetup(ctx, s.db)
	return warnings, s.fail("check set-up", err)
}

// CheckSetup implements [core.SetupChecker]: it warns of settings with which the
// server may lose what it has acknowledged.
func (t *Table) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := checkSetup(ctx, t.db)
	return warnings, t.fail("check set-up", err)
}

func checkSetup(ctx context.Context, db *sql.DB) (warnings []string, err error) {
	var flush, binlog, sync string
	if err := db.QueryRowContext(ctx, setupQuery).Scan(&flush, &binlog, &sync); err != nil {
		return nil, err
	}
	if flush != "1" {
		warnings = append(warnings, fmt.Sprintf("innodb_flush_log_at_trx_commit is %s: a crash may lose tasks that were scheduled and completions that were recorded within the last second, and run the latter again; set it to 1", flush))
	}
	if !off(binlog) && sync != "1" {
		warnings = append(warnings, fmt.Sprintf("sync_binlog is %s: after a crash replicas may lack, or the server roll back, what it had acknowledged; set it to 1", sync))
	}
	return warnings, nil
}

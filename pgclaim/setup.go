package pgclaim

import (
	"context"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.SetupChecker = (*Store)(nil)
	_ core.SetupChecker = (*Table)(nil)
)

const setupSQL = `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes')`

// CheckSetup implements [core.SetupChecker]: it warns of settings with which
// Postgres may lose what it has acknowledged.
func (s *Store) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := s.checkSetup(ctx)
	return warnings, s.fail("check set-up", err)
}

// CheckSetup implements [core.SetupChecker]: it warns of settings with which
// Postgres may lose what it has acknowledged.
func (t *Table) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := t.checkSetup(ctx)
	return warnings, t.fail("check set-up", err)
}

func (h *handle) checkSetup(ctx context.Context) (warnings []string, err error) {
	r, err := h.runner(ctx)
	if err != nil {
		return nil, err
	}
	var commit, fsync, pages string
	if err := r.run(ctx, setupSQL, nil, func(scan scanner) error { return scan(&commit, &fsync, &pages) }); err != nil {
		return nil, err
	}
	if commit == "off" {
		warnings = append(warnings, "synchronous_commit is off: a crash of Postgres may lose tasks that were scheduled and completions that were recorded within the last second, and run the latter again; set it to on for this role or database")
	}
	for name, value := range map[string]string{"fsync": fsync, "full_page_writes": pages} {
		if value == "off" {
			warnings = append(warnings, fmt.Sprintf("%s is off: a crash of the machine may corrupt the database and lose any of its tasks; set it to on", name))
		}
	}
	return warnings, nil
}

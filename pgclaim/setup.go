package pgclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.SetupChecker = (*Store)(nil)
	_ core.SetupChecker = (*Table)(nil)
)

// schedulersConns is how many connections a scheduler uses at a time: three claims, four
// batches of results, a heartbeat, two sweeps.
const schedulersConns = 10

const setupSQL = `
SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_standby_names') <> ''`

// CheckSetup implements [core.SetupChecker]: it warns of settings with which
// Postgres may lose what it has acknowledged, of a pool that is too small for a
// scheduler, and of a table that has got parts or children.
func (s *Store) CheckSetup(ctx context.Context) ([]string, error) {
	warnings, err := s.checkSetup(ctx)
	if err != nil {
		return nil, s.fail("check set-up", err)
	}
	if r, err := s.runner(ctx); err == nil {
		_, err = s.inspect(ctx, r)
		if parted, ok := errors.AsType[partedError](err); ok { // what else it may find is Migrate's to say
			warnings = append(warnings, parted.Error()+"; the rows of its parts are refused, and are never claimed")
		}
	}
	return warnings, nil
}

// CheckSetup implements [core.SetupChecker]: it warns of settings with which
// Postgres may lose what it has acknowledged, and of a pool that is too small for a
// scheduler.
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
	var standby bool
	if err := r.run(ctx, setupSQL, nil, func(scan scanner) error {
		return scan(&commit, &fsync, &pages, &standby)
	}); err != nil {
		return nil, err
	}
	switch {
	case commit == "off":
		warnings = append(warnings, "synchronous_commit is off: a crash of Postgres may lose tasks that were scheduled and completions that were recorded within the last second, and run the latter again; set it to on for this role or database")
	case commit == "local" && standby:
		warnings = append(warnings, "synchronous_commit is local beside synchronous_standby_names: a failover may lose tasks that were scheduled and completions that were recorded just before it; set it to on for this role or database")
	}
	for _, s := range []struct{ name, value string }{{"fsync", fsync}, {"full_page_writes", pages}} {
		if s.value == "off" {
			warnings = append(warnings, fmt.Sprintf("%s is off: a crash of the machine may corrupt the database and lose any of its tasks; set it to on", s.name))
		}
	}
	return append(warnings, h.smallPool()...), nil
}

// smallPool warns of a pool that a scheduler alone may use up.
func (h *handle) smallPool() []string {
	var most int
	var mend string
	if h.pool != nil {
		most, mend = int(h.pool.Config().MaxConns), "pool_max_conns in the DSN, or MaxConns in pgxpool.Config"
	} else {
		most, mend = h.db.Stats().MaxOpenConnections, "SetMaxOpenConns"
	}
	if most == 0 || most >= schedulersConns {
		return nil
	}
	return []string{fmt.Sprintf("the pool has at most %d connections, and a scheduler uses up to %d at a time, besides those of its handlers: under load its calls wait for one another, heartbeats too, and tasks come late; give it more (%s)", most, schedulersConns, mend)}
}

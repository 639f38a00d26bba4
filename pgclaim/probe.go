package pgclaim

import (
	"context"
	"strings"
)

// probeSQL changes no row and locks none. A server that takes no writes refuses it all
// the same, before it looks for rows.
const probeSQL = `UPDATE {table} AS t SET {column} = t.{column} WHERE false`

// Probe implements core.Prober. It asks for the right to update the table too.
func (s *Store) Probe(ctx context.Context) error {
	return s.fail("probe", s.probe(ctx, s.quoted(), "holder"))
}

// Probe implements core.Prober. It asks for the right to update the state's column too.
func (t *Table) Probe(ctx context.Context) error {
	return t.fail("probe", t.probe(ctx, t.name, quote(t.def.State.Name)))
}

func (h *handle) probe(ctx context.Context, table, column string) error {
	r, err := h.runner(ctx)
	if err != nil {
		return err
	}
	statement := strings.NewReplacer("{table}", table, "{column}", column).Replace(probeSQL)
	return r.run(ctx, statement, nil, func(scanner) error { return nil })
}

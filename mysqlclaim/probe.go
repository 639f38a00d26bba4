package mysqlclaim

import (
	"context"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

var (
	_ core.Prober = (*Store)(nil)
	_ core.Prober = (*Table)(nil)
)

// Probe implements [core.Prober] by an UPDATE of no row, which a server that has become
// read-only refuses like any other. A connection to it is dropped.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.ready(ctx, s.db); err != nil {
		return s.fail("probe", err)
	}
	r := s.auto(time.Time{})
	_, err := r.exec(ctx, new(text).sql("UPDATE ", s.quoted, " SET status = status WHERE queue = ").val(s.queue).sql(" AND id = ").val("").sql(" AND FALSE"))
	return s.fail("probe", r.effect.prove(err))
}

// Probe implements [core.Prober] by an UPDATE of no row; see Store.Probe.
func (t *Table) Probe(ctx context.Context) error {
	var effect effect
	c, err := t.facts(ctx, t.db)
	if err != nil {
		return t.fail("probe", effect.prove(unsent{err}))
	}
	name := quoteName(t.def.State.Name)
	_, err = pool{t.db}.ExecContext(ctx, c.dialect.set("UPDATE "+t.quoted+" SET "+name+" = "+name+" WHERE FALSE", shortWait, anyUpdate))
	return t.fail("probe", effect.prove(err))
}

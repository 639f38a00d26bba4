package parts

import (
	"context"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// openSQLite opens a file. Any number of processes on this host may share it.
func (p *Parts) openSQLite(ctx context.Context) error {
	path, _ := p.choice.sqlitePath()
	store, err := sqliteclaim.Open(ctx, path, sqliteclaim.Options{Table: p.choice.Table, Queue: p.choice.Queue})
	if err != nil {
		return err
	}
	p.close = append(p.close, store.Close)
	p.Store, p.DB, p.quote = store, store.DB(), '"'
	p.table = func(ctx context.Context, def claim.Table) (Table, error) {
		t, err := sqliteclaim.OpenTable(ctx, path, def)
		if err != nil {
			return nil, err
		}
		p.close = append(p.close, t.Close)
		return t, nil
	}
	return nil
}

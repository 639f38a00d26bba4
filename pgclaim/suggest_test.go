package pgclaim

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// Each table has rows before, and takes the user's own INSERT after.
func TestSuggestLeadsToModeFull(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	const index = `CREATE INDEX CONCURRENTLY ON "{t}" ("status", "created_at", "order_id")`
	const own = "CREATE TABLE {t} (order_id varchar(50) PRIMARY KEY, created_at timestamp NOT NULL DEFAULT LOCALTIMESTAMP, "
	for _, c := range []struct {
		name, ddl string
		mode      claim.Mode // of the definition, 0: StatusUpdated
		def       func(*claim.Table)
		want      []string // nil: only that it works
	}{
		{name: "recipe", ddl: ordersEnumSQL + ";" + ordersSQL, want: []string{fullSQL, index}},
		{name: "transition", mode: claim.Transition, ddl: "CREATE TYPE {t}_e AS ENUM ('pending', 'cancelled');" + own + "updated_at timestamp, status {t}_e NOT NULL DEFAULT 'pending')",
			want: []string{fullSQL, `ALTER TYPE {t}_e ADD VALUE 'processing'`, index}},
		{name: "checked", ddl: own + "updated_at timestamp, status varchar(8) NOT NULL DEFAULT 'pending' CHECK (status IN ('pending')))"},
		{name: "a domain", ddl: "CREATE DOMAIN {t}_d AS text NOT NULL DEFAULT 'pending' CHECK (VALUE IN ('pending', 'cancelled'));" + own + "updated_at timestamp, status {t}_d)"},
		{name: "no key, names of one's own, a time that is missing", ddl: "CREATE TABLE {t} (order_id text, created_at timestamp NOT NULL, status text NOT NULL DEFAULT 'pending')", mode: claim.Full, def: func(d *claim.Table) {
			d.Token, d.Holder, d.Lease = "fence", "who", claim.TimeColumn{Name: "until", Kind: claim.Timestamp, Digits: 3}
			d.Updated = claim.TimeColumn{Name: "changed", Kind: claim.DateTime, Digits: 6, Zone: time.UTC}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := "o" + strings.Map(func(r rune) rune {
				if r < 'a' || r > 'z' {
					return '_'
				}
				return r
			}, c.name)
			fill := strings.NewReplacer("{t}", table).Replace
			for statement := range strings.SplitSeq(c.ddl, ";") {
				s.exec(t, fill(statement))
			}
			insert := func(id string) {
				s.exec(t, fill(`INSERT INTO {t} (order_id, created_at) VALUES ($1::text, LOCALTIMESTAMP)`), id)
			}
			insert("before")
			def := orders(table, cmp.Or(c.mode, claim.StatusUpdated))
			if c.def != nil {
				c.def(&def)
			}
			got := s.suggested(t, s.onTable(t, def))
			if c.want != nil {
				var want []string
				for _, w := range c.want {
					want = append(want, fill(w))
				}
				assert.Equal(t, want, got)
			}
			full := fullOf(def)
			full.LeaseFor = 0
			after := s.onTable(t, full)
			again, err := after.Suggest(t.Context())
			require.NoError(t, err)
			assert.Empty(t, again)
			again, err = s.onTable(t, def).Suggest(t.Context())
			require.NoError(t, err)
			assert.Empty(t, again, "without mapping them")
			fs, err := after.Verify(t.Context())
			require.NoError(t, err)
			assert.Less(t, fs.Worst(), claim.Warning, "%s", fs)
			insert("after")
			s.exec(t, fill(`UPDATE {t} SET status = 'processing'`))
			s.exec(t, fill(`UPDATE {t} SET status = 'cancelled'`))
		})
	}
}

func TestSuggestSaysWhereNoStatementLeads(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	s.exec(t, "CREATE TABLE flags (order_id text PRIMARY KEY, status boolean NOT NULL, created_at timestamp NOT NULL, updated_at timestamp)")
	s.exec(t, "CREATE VIEW seen AS SELECT * FROM flags")
	for name, change := range map[string]func(*claim.Table){
		"no table":  func(d *claim.Table) { d.Name = "none" },
		"a view":    func(d *claim.Table) { d.Name = "seen" },
		"no column": func(d *claim.Table) { d.Due.Base.Name = "born" },
		"boolean":   func(d *claim.Table) { d.State.Pending, d.State.Done = claim.Bool(false), claim.Bool(true) },
	} {
		def := orders("flags", claim.Transition)
		change(&def)
		_, err := s.onTable(t, def).Suggest(t.Context())
		require.ErrorIs(t, err, core.ErrInvalid, name)
		assert.ErrorContains(t, err, "pgclaim: suggest: ", name)
	}
}

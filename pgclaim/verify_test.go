package pgclaim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// fault is a table with something wrong. It is the recipe's unless ddl makes it,
// with alter run on it; {t} stands for its name, {r} for a role's. def changes the definition.
type fault struct {
	name     string
	mode     claim.Mode // 0: StatusUpdated
	ddl      string
	alter    string
	def      func(*claim.Table)
	session  map[string]string
	want     claim.Severity
	code     string
	column   string
	stubborn bool // the mend is no statement, or goes beyond the table
}

// finding looks for a code and column.
func finding(fs claim.Findings, code, column string) (claim.Finding, bool) {
	for _, f := range fs {
		if f.Code == code && f.Column == column {
			return f, true
		}
	}
	return claim.Finding{}, false
}

// expected are the warnings of the recipe's table, which nobody can help.
var expected = map[string]bool{"nullable updated_at": true}

func unexpected(fs claim.Findings) (out []string) {
	for _, f := range fs {
		if f.Severity >= claim.Warning && !expected[f.Code+" "+f.Column] {
			out = append(out, f.String())
		}
	}
	return out
}

func TestVerifyFindsEachFaultAndItsMendMendsIt(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	url := testserver.Postgres(t)
	s := native.open(t, url, Options{})
	s.exec(t, `CREATE EXTENSION IF NOT EXISTS citext`)
	s.exec(t, `CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	s.exec(t, `CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`)
	for n, c := range verifyFaults() {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("orders%d", n)
			role := fmt.Sprintf("role_%d", time.Now().UnixNano())
			fill := strings.NewReplacer("{t}", name, "{r}", role).Replace
			def := orders(name, cmp.Or(c.mode, claim.StatusUpdated))
			ddl := c.ddl
			if ddl == "" {
				ddl = strings.Join([]string{ordersEnumSQL, ordersSQL, ordersIndex}, ";\n")
				if c.mode == claim.Full {
					ddl += ";\n" + fullSQL
				}
			}
			_, err := s.pool.Exec(t.Context(), fill(ddl+";\n"+c.alter), pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
			if strings.Contains(c.alter, "{r}") { // roles are the whole server's
				defer func() { s.exec(t, "DROP ROLE "+role) }()
				defer func() { s.exec(t, "DROP OWNED BY "+role) }()
			}
			if c.def != nil {
				c.def(&def)
			}
			d := native
			d.session = map[string]string{}
			for key, value := range c.session {
				d.session[key] = fill(value)
			}
			s := s
			if c.session != nil {
				s = d.open(t, url, Options{})
			}
			table := s.onTable(t, def)
			fs, err := table.Verify(t.Context())
			require.NoError(t, err)
			f, ok := finding(fs, c.code, c.column)
			require.True(t, ok, "no %s %s among\n%s", c.code, c.column, fs)
			assert.Equal(t, c.want, f.Severity, "%s", f)
			assert.NotEmpty(t, f.Reason)
			if c.stubborn {
				return
			}
			require.True(t, isStatement(f.Mend), "%s", f)
			s.exec(t, f.Mend)
			fs, err = table.Verify(t.Context())
			require.NoError(t, err)
			_, still := finding(fs, c.code, c.column)
			assert.False(t, still, "after %s\n%s", f.Mend, fs)
		})
	}
}

// suggested runs what the table suggests.
func (s *Store) suggested(t testing.TB, table *Table) []string {
	t.Helper()
	all, err := table.Suggest(t.Context())
	require.NoError(t, err)
	for _, statement := range all {
		s.exec(t, statement)
	}
	return all
}

func TestVerifyHasNothingAgainstAGoodTable(t *testing.T) {
	url := testserver.Postgres(t)
	eachMode(t, func(t *testing.T, d driver) {
		s := d.open(t, url, Options{})
		s.exec(t, `DROP TABLE IF EXISTS orders`)
		s.exec(t, `DROP TYPE IF EXISTS orders_status`)
		for _, statement := range []string{ordersEnumSQL, ordersSQL, ordersIndex} {
			s.exec(t, strings.ReplaceAll(statement, "{t}", "orders"))
		}
		s.exec(t, `INSERT INTO orders (order_id, created_at) VALUES ('a', LOCALTIMESTAMP), ('b', LOCALTIMESTAMP)`)
		for _, mode := range []claim.Mode{claim.StatusUpdated, claim.Transition, claim.Full} {
			table := s.onTable(t, orders("orders", mode))
			if mode == claim.Full {
				s.suggested(t, table)
			}
			state := func() []string {
				c, err := table.catalog(t.Context())
				require.NoError(t, err)
				rows := s.text(t, `SELECT o.xmin::text || o.ctid::text || o::text FROM orders AS o ORDER BY 1`)
				definition, err := json.Marshal(c.Table)
				require.NoError(t, err)
				return append(rows, string(definition))
			}
			before := state()
			fs, err := table.Verify(t.Context())
			require.NoError(t, err)
			assert.Empty(t, unexpected(fs), mode.String())
			assert.Equal(t, before, state(), "it changes nothing")
			promises := table.def.Promises()
			found := len(fs) - len(promises)
			assert.Equal(t, promises, fs[found:], "the promises at the end")
			for i := 1; i < found; i++ {
				assert.GreaterOrEqual(t, fs[i-1].Severity, fs[i].Severity, "the worst first")
			}
		}
	})
}

// Which clock the driver writes by is asked of itself.
func TestVerifySeesByWhichClockTheDriverWrites(t *testing.T) {
	url := testserver.Postgres(t)
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	eachMode(t, func(t *testing.T, d driver) {
		s := d.open(t, url, Options{})
		s.exec(t, "DROP TABLE IF EXISTS written")
		s.exec(t, "CREATE TABLE written (at timestamp NOT NULL)")
		table := s.onTable(t, orders("orders", claim.StatusUpdated))
		winter := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
		for _, at := range []time.Time{winter, winter.AddDate(0, 6, 0)} {
			got, err := table.written(t.Context(), []zoneOffset{{At: at.Unix()}}, york)
			require.NoError(t, err)
			s.exec(t, "DELETE FROM written")
			insert := "INSERT INTO written VALUES ($1)"
			if s.db != nil {
				_, err = s.db.ExecContext(t.Context(), insert, at.In(york))
			} else {
				_, err = s.pool.Exec(t.Context(), insert, at.In(york))
			}
			require.NoError(t, err)
			want := s.text(t, "SELECT extract(epoch FROM at)::bigint::text FROM written")
			assert.Equal(t, want, []string{fmt.Sprint(got[0].At + got[0].Seconds)}, "as an INSERT of the user's")
			switch d.mode {
			case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol: // the session's, which is UTC
				assert.Zero(t, apart(got, time.UTC))
			default: // an order of this second looks hours old
				assert.EqualValues(t, ahead(york, at.Unix()), apart(got, time.UTC))
			}
		}
	})
}

func TestVerifyBehindATransactionPooler(t *testing.T) {
	t.Attr("dueclaim.backend", pooled)
	direct := testserver.Postgres(t)
	s := native.open(t, direct, Options{})
	for _, statement := range []string{ordersEnumSQL, ordersSQL} {
		s.exec(t, strings.ReplaceAll(statement, "{t}", "orders"))
	}
	want, err := s.onTable(t, orders("orders", claim.StatusUpdated)).Verify(t.Context())
	require.NoError(t, err)
	url := testserver.PgBouncer(t, direct)
	for _, d := range []driver{native, standard} {
		got, err := d.open(t, url, Options{}).onTable(t, orders("orders", claim.StatusUpdated)).Verify(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// Every kind of column that fits, with a schema, and each kind of index that
// serves.
func TestVerifyTakesEachTypeThatFits(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	s.exec(t, `CREATE SCHEMA shop`)
	s.exec(t, `CREATE DOMAIN shop.status AS varchar(20) NOT NULL CHECK (VALUE IN ('new', 'busy', 'it''s', 'dead'))`)
	s.exec(t, `CREATE DOMAIN shop.moment AS timestamptz(3) NOT NULL`)
	s.exec(t, `CREATE TABLE shop."Jobs" (
		id uuid PRIMARY KEY, state shop.status, due shop.moment, kind smallint NOT NULL, active boolean NOT NULL,
		token bigint, holder varchar(64), lease timestamp(3), tries smallint, crashes integer, err varchar(4096), body jsonb, what text)`)
	s.exec(t, `ALTER TABLE shop."Jobs" SET (fillfactor = 70)`)
	def := claim.Table{
		Name: "shop.Jobs", ID: claim.IDColumn{Name: "id", Kind: claim.UUIDID},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("busy"), Done: claim.Text("it's"), Dead: claim.Text("dead")},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.Timestamp, Digits: 3}},
		Where: []claim.Condition{{Column: "kind", Equals: claim.Int(7)}, {Column: "active", Equals: claim.Bool(true)}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.DateTime, Digits: 3, Zone: time.UTC},
		Attempts: "tries", Crashes: "crashes", LastError: "err", Payload: "body", Kind: "what",
	}
	table := s.onTable(t, def)
	for _, c := range []struct {
		indexes string
		serve   bool
	}{
		{`(kind, active, state, due)`, true},
		{`(active, state, kind, due, id)`, true},
		{`(state, due) WHERE active AND kind = 7`, true},
		{`(state, due) WHERE active = true AND kind IN (7, 8) AND due IS NOT NULL`, true},
		{`(kind, due) WHERE active AND state IN ('new', 'busy')`, true},
		{`(kind, due) WHERE active AND state = 'new' / (kind, due) WHERE active AND state = 'busy'`, true},
		{`(kind, due) WHERE active AND state = 'new'`, false},
		{`(kind, active, due, state)`, false},
		{`(kind, active, state, id)`, false},
		{`(kind, active, state)`, false},
		{`(state, due) WHERE NOT active AND kind = 7`, false},
		{`(state, due) WHERE active AND kind > 6`, false},
		{`(state, due) WHERE active AND kind IN (6, 8)`, false},
		{`(kind, active, state, due) WHERE what = 'x'`, false},
		{`(kind, active, state, due) WHERE what IS NOT NULL`, false},
		{`(kind, active, (lower(state)), due)`, false},
	} {
		for part := range strings.SplitSeq(c.indexes, " / ") {
			s.exec(t, `CREATE INDEX ON shop."Jobs" `+part)
		}
		fs, err := table.Verify(t.Context())
		require.NoError(t, err)
		f, missing := finding(fs, "due-index-missing", "due")
		assert.Equal(t, c.serve, !missing, c.indexes)
		if missing {
			s.exec(t, f.Mend)
			fs, err = table.Verify(t.Context())
			require.NoError(t, err)
		}
		assert.Empty(t, unexpected(fs), c.indexes)
		for _, index := range s.text(t, `SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'shop."Jobs"'::regclass AND NOT indisprimary`) {
			s.exec(t, "DROP INDEX "+index)
		}
	}
}

// What the catalog prints depends on settings of the session.
func TestVerifyIsTheSameInOddSessions(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	url := testserver.Postgres(t)
	d := native
	d.session = map[string]string{"quote_all_identifiers": "on", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "bytea_output": "escape", "extra_float_digits": "0", "transform_null_equals": "on", "default_transaction_isolation": "read committed", "search_path": "public, pg_catalog"}
	s := d.open(t, url, Options{})
	for _, statement := range []string{ordersEnumSQL, ordersSQL, "CREATE INDEX ON {t} (created_at, order_id) WHERE status = 'pending'", "CREATE INDEX ON {t} (created_at, order_id) WHERE status IN ('processing', 'pending')",
		"ALTER TABLE {t} ADD CHECK (status IN ('pending', 'processing', 'cancelled', 'completed'))"} {
		s.exec(t, strings.ReplaceAll(statement, "{t}", "orders"))
	}
	fs, err := s.onTable(t, orders("orders", claim.StatusUpdated)).Verify(t.Context())
	require.NoError(t, err)
	assert.Empty(t, unexpected(fs))
}

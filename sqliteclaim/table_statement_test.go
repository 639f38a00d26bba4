package sqliteclaim_test

import (
	"database/sql"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// record returns all statements that a table makes.
func record(t testing.TB, db *sql.DB, def claim.Table, ids ...core.ID) *sqliteclaim.Recorder {
	t.Helper()
	table, err := sqliteclaim.NewTable(db, def)
	require.NoError(t, err)
	r := &sqliteclaim.Recorder{T: table}
	e, ctx := table.Engine(), t.Context()
	_, err = e.Claim(ctx, r, ids, lease("h'", 0, 30))
	require.NoError(t, err)
	var grants []core.Grant
	var settlements []core.Settlement
	for i, id := range ids {
		g := core.Grant{ID: id, Token: int64(i + 1), Holder: "h'"}
		grants = append(grants, g)
		settlements = append(settlements, core.Settlement{Grant: g, Outcome: core.Outcome(1 + i%4), Due: at(60), Err: "it's \"so\"; --"})
	}
	_ = e.Extend(ctx, r, grants, at(60)) // refused: nothing is there
	_ = e.Settle(ctx, r, at(1), settlements)
	_, err = e.Waiting(ctx, r, noon, core.Entry{ID: ids[0], Due: noon}, at(3600), 500)
	require.NoError(t, err)
	if def.Mode() == claim.Transition {
		_, err = e.Step(ctx, r, ids[0], noon)
		require.NoError(t, err)
	}
	return r
}

func TestTableFindsRowsByTheirIDsAndSweepsAlongTheIndex(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	db := usersDB(t, file(t))
	for i, config := range tabletest.Configs(native) {
		name := "orders" + string(rune('a'+i))
		execute(t, db, shopSQL(config, name))
		r := record(t, db, config.Table(name, "shop"), ids(8)...)
		require.GreaterOrEqual(t, len(r.Texts), 3)
		for k, text := range r.Texts {
			plan := strings.Join(planOf(t, db, text, r.Args[k]...), "\n")
			sweep := strings.Contains(text, "ORDER BY")
			for line := range strings.SplitSeq(plan, "\n") {
				if !strings.Contains(line, " "+name) && !strings.Contains(line, " t USING") && !strings.HasSuffix(line, "SCAN t") {
					continue
				}
				want := "USING INDEX sqlite_autoindex_" + name
				if sweep {
					want = "INDEX " + name + "_sweep"
				}
				require.Contains(t, line, want, "%s\n%s", text, plan)
				require.Contains(t, line, "SEARCH", text)
			}
			if sweep {
				require.LessOrEqual(t, strings.Count(plan, "TEMP B-TREE"), 1, "only what the branches found is sorted:\n%s", plan)
			}
		}
	}
}

// planOf is what SQLite says about how it would run a statement.
func planOf(t testing.TB, db *sql.DB, text string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err, text)
	defer func() { require.NoError(t, rows.Close()) }()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		lines = append(lines, detail)
	}
	require.NoError(t, rows.Err())
	return lines
}

// A name is refused or quoted, a value is an argument: neither has a say in what a
// statement is.
func FuzzNoNameOrValueChangesAStatement(f *testing.F) {
	for _, s := range []string{"orders", "order", "select", `a"b`, "a`b", "a'b", "a;b", "a--b", "a\x00b", "größe", strings.Repeat("x", 64), "$1", "_", "pending", `\`, "''", "?1"} {
		f.Add(s, s)
		f.Add("orders", s)
		f.Add(s, "shop")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString([]string{`'`, `''`, `"`, `\`, "`", ";", "--", "/*", "*/", "?", "$1", ":a", "@", "a", "é", "😀", " ", "NULL", ")", "(", "x'00'"}[random.IntN(21)])
		}
		f.Add("orders", b.String())
	}
	shapes := func(t *testing.T, db *sql.DB, config tabletest.Config, name, column, value string, id core.ID) (list []string, ok bool) {
		def := config.Table(name, value)
		def.State.Pending, def.Kind = claim.Text(value+"-"), column
		if def.Check() != nil || id.Check() != nil {
			return nil, false
		}
		for _, text := range record(t, db, def, id).Texts {
			shape, err := tabletest.Shape(text, '"', false)
			require.NoError(t, err)
			list = append(list, shape)
		}
		return list, true
	}
	db, err := sql.Open("sqlite", ":memory:") // never asked
	require.NoError(f, err)
	configs := tabletest.Configs(native)
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, config := range configs {
			got, ok := shapes(t, db, config, name, name+"_kind", value, core.ID(value))
			if !ok {
				continue
			}
			want, _ := shapes(t, db, config, "orders", "kind", "shop", "1")
			require.Equal(t, want, got)
		}
	})
}

func TestTableOfOtherIDs(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	const uuid, later = "01234567-89ab-cdef-0123-456789abcdef", "f1234567-89ab-cdef-0123-456789abcdef"
	for name, c := range map[string]struct {
		kind      claim.IDKind
		column    string
		rows      []string // as SQL writes them
		ids       []core.ID
		malformed []core.ID
		gone      []core.ID
	}{
		"rowid":   {claim.IntegerID, "INTEGER PRIMARY KEY", []string{"-7", "42"}, []core.ID{"-7", "42"}, []core.ID{"042", "x", "4.0", "9223372036854775808"}, []core.ID{"43", "9223372036854775807"}},
		"integer": {claim.IntegerID, "BIGINT NOT NULL UNIQUE", []string{"1", "9223372036854775807"}, []core.ID{"1", "9223372036854775807"}, []core.ID{"+1", " 1"}, []core.ID{"9223372036854775806"}},
		"untyped": {claim.IntegerID, "NOT NULL UNIQUE", []string{"5", "6", "'7'", "8.0", "x'39'"}, []core.ID{"5", "6"}, nil, []core.ID{"7", "8", "9"}},
		"uuid":    {claim.UUIDID, "UUID PRIMARY KEY NOT NULL", []string{"'" + uuid + "'", "'" + later + "'"}, []core.ID{uuid, later}, []core.ID{core.ID(strings.ToUpper(later)), "x"}, nil},
		"binary uuid": {claim.BinaryUUIDID, "BINARY(16) PRIMARY KEY NOT NULL", []string{"x'0123456789abcdef0123456789abcdef'", "x'f123456789abcdef0123456789abcdef'", "x'00'", "'text'"},
			[]core.ID{uuid, later}, []core.ID{core.ID(strings.ToUpper(later))}, []core.ID{"00000000-89ab-cdef-0123-456789abcdef"}},
		"NOCASE": {claim.TextID, "TEXT COLLATE NOCASE PRIMARY KEY NOT NULL", []string{"'Abc'", "'xyz'"}, []core.ID{"Abc", "xyz"}, nil, []core.ID{"abc", "ABC", "XYZ"}},
		"RTRIM":  {claim.TextID, "TEXT COLLATE RTRIM PRIMARY KEY", []string{"'a'", "'b '", "NULL", "x'63'"}, []core.ID{"a"}, []core.ID{"a "}, []core.ID{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			def := full()
			def.ID.Kind = c.kind
			table, err := sqliteclaim.OpenTable(t.Context(), path, def)
			require.NoError(t, err)
			defer func() { require.NoError(t, table.Close()) }()
			execute(t, table.DB(), strings.Replace(fullSQL, "TEXT NOT NULL PRIMARY KEY", c.column, 1))
			for _, row := range c.rows {
				execute(t, table.DB(), "INSERT INTO jobs (id, shop, due_ms) VALUES ("+row+", 7, 0)")
			}
			waiting := func() []core.ID {
				entries, err := table.Waiting(t.Context(), noon, core.Entry{}, at(1), 100)
				require.NoError(t, err)
				var all []core.ID
				for _, e := range entries {
					all = append(all, e.ID)
				}
				return all
			}
			require.Subset(t, waiting(), c.ids)
			for _, id := range c.malformed {
				require.ErrorIs(t, table.CheckID(id), core.ErrInvalid, id)
				got, err := table.Claim(t.Context(), []core.ID{id}, lease("m", 0, 30))
				require.NoError(t, err)
				require.Equal(t, core.Refused.String(), got[0].Verdict.String(), id)
				require.ErrorIs(t, got[0].Err, core.ErrInvalid)
			}
			for _, id := range c.gone {
				got, err := table.Claim(t.Context(), []core.ID{id}, lease("g", 0, 30))
				require.NoError(t, err)
				require.Equal(t, core.Gone.String(), got[0].Verdict.String(), id)
			}
			got, err := table.Claim(t.Context(), c.ids, lease("h", 0, 30))
			require.NoError(t, err)
			var settlements []core.Settlement
			for i, g := range got {
				require.Equal(t, core.Granted.String(), g.Verdict.String(), g.ID)
				require.Equal(t, c.ids[i], g.Grant.ID)
				require.NoError(t, table.Extend(t.Context(), []core.Grant{g.Grant}, at(60)))
				settlements = append(settlements, core.Settlement{Grant: g.Grant, Outcome: core.Retry, Due: at(61), Err: "again"})
			}
			require.NotSubset(t, waiting(), c.ids)
			require.NoError(t, table.Settle(t.Context(), at(1), settlements))
			require.Len(t, column(t, table.DB(), "SELECT id FROM jobs WHERE error = 'again' AND lease IS NULL AND due_ms > 0"), len(c.ids))
		})
	}
}

func TestTableReadsTimesAsRowsHaveThem(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	def := recipe()
	def.Due.After = 0
	table, err := sqliteclaim.OpenTable(t.Context(), file(t), def)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	execute(t, table.DB(), recipeSQL)
	for id, text := range map[string]string{
		"as Go":     "'2030-01-01 11:59:58.5 +0000 UTC'",
		"a day":     "'2030-01-01'",
		"a minute":  "'2030-01-01 11:59'",
		"a number":  "17",
		"with T":    "'2029-12-31T11:59:59Z'",
		"no month":  "'2030-00-01 12:00:00'",
		"not yet":   "'2030-01-01 12:00:00 +0000 UTC'",
		"as SQLite": "datetime('2030-01-01 12:00:00')",
	} {
		execute(t, table.DB(), "INSERT INTO orders (order_id, created_at) VALUES ('"+id+"', "+text+")")
	}
	entries, err := table.Waiting(t.Context(), noon, core.Entry{}, at(1), 100)
	require.NoError(t, err)
	require.Equal(t, []core.Entry{
		{ID: "with T", Due: time.Date(2029, 12, 31, 11, 59, 59, 0, time.UTC)},
		{ID: "a day", Due: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)},
		{ID: "a minute", Due: at(-60)},
		{ID: "as Go", Due: at(-2).Add(500 * time.Millisecond)},
		{ID: "as SQLite", Due: noon},
		{ID: "not yet", Due: noon},
	}, entries, "what is no time is never due")
	got, err := table.Claim(t.Context(), []core.ID{"as SQLite", "not yet", "as Go"}, lease("h", 0, 30))
	require.NoError(t, err)
	require.Equal(t, []core.Verdict{core.Granted, core.Refused, core.Granted}, []core.Verdict{got[0].Verdict, got[1].Verdict, got[2].Verdict}, "text compares: a second late, never early")
}

package pgclaim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// typed is a table whose columns have other types than the suite's.
type typed struct {
	name      string
	id, state string // types
	kind      claim.IDKind
	times     claim.TimeColumn
	timeType  string
	payload   string
	states    [4]claim.Value // pending, processing (may be zero), done, dead
	// ids are two of rows; strangers are not there, or only in another spelling.
	ids, strangers []core.ID
	malformed      []core.ID
}

func typedTables() []typed {
	text := [4]claim.Value{claim.Text("pending"), claim.Text("it's \\ \"busy\""), claim.Text("done"), claim.Text("dead")}
	ints := [4]claim.Value{claim.Int(-1), claim.Int(1), claim.Int(2), claim.Int(3)}
	milli := claim.TimeColumn{Kind: claim.UnixMilli}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return []typed{
		{
			name: "uuids", id: "uuid", kind: claim.UUIDID, state: "typed_state", states: text, times: milli, timeType: "bigint", payload: "jsonb",
			ids:       []core.ID{"01234567-89ab-cdef-0123-456789abcdef", "f1234567-89ab-cdef-0123-456789abcdef"},
			strangers: []core.ID{"00000000-0000-0000-0000-000000000000"},
			malformed: []core.ID{"01234567-89AB-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef", "x"},
		},
		{
			name: "uuidtext", id: "varchar(36)", kind: claim.UUIDID, state: "typed_domain", states: text, timeType: "timestamptz(6)", payload: "text",
			times:     claim.TimeColumn{Kind: claim.Timestamp, Digits: 6},
			ids:       []core.ID{"01234567-89ab-cdef-0123-456789abcdef", "f1234567-89ab-cdef-0123-456789abcdef"},
			strangers: []core.ID{"00000000-0000-0000-0000-000000000000"},
		},
		{
			name: "integers", id: "integer", kind: claim.IntegerID, state: "smallint", states: ints, timeType: "integer", payload: "bytea",
			times: claim.TimeColumn{Kind: claim.UnixSecond},
			ids:   []core.ID{"-7", "12"}, strangers: []core.ID{"9223372036854775807", "-9223372036854775808", "0"},
			malformed: []core.ID{"012", "+12", "1e1", "9223372036854775808"},
		},
		{
			name: "smallints", id: "smallint", kind: claim.IntegerID, state: "bigint", states: ints, timeType: "timestamp(3)", payload: "json",
			times: claim.TimeColumn{Kind: claim.DateTime, Digits: 3, Zone: berlin},
			ids:   []core.ID{"7", "32767"}, strangers: []core.ID{"32768", "70000"},
		},
		{
			name: "padded", id: "char(20)", state: "char(20)", states: text, times: milli, timeType: "bigint", payload: "varchar(100)",
			ids: []core.ID{"a", "b"}, strangers: []core.ID{"A", "aa"},
		},
		{
			name: "citexts", id: "citext", state: "citext", states: text, times: milli, timeType: "bigint", payload: "citext",
			ids: []core.ID{"Abc", "x"}, strangers: []core.ID{"abc", "ABC", "X"},
		},
		{
			name: "loose", id: "text COLLATE loose", state: "text", states: text, times: milli, timeType: "bigint", payload: "text",
			ids: []core.ID{"Abc", "é"}, strangers: []core.ID{"abc", "É", "e\u0301"},
		},
		{
			name: "bytewise", id: `varchar(40) COLLATE "C"`, state: "varchar(40)", states: text, times: milli, timeType: "bigint", payload: "typed_state",
			ids: []core.ID{`q'uo"te\ {a,b}`, "NULL"}, strangers: []core.ID{"null", `q'uo"te`},
		},
		{
			name: "domains", id: "typed_id", state: "typed_state", states: text, times: milli, timeType: "typed_time", payload: "bytea",
			ids: []core.ID{"a", "b"}, strangers: []core.ID{"c"},
		},
		{
			name: "booleans", id: "text", state: "boolean", states: [4]claim.Value{claim.Bool(false), {}, claim.Bool(true)}, times: milli, timeType: "bigint", payload: "bytea",
			ids: []core.ID{"a", "b"}, strangers: []core.ID{"c"},
		},
	}
}

func (x typed) def() claim.Table {
	column := func(name string) claim.TimeColumn { c := x.times; c.Name = name; return c }
	def := claim.Table{
		Name: x.name, ID: claim.IDColumn{Name: "id", Kind: x.kind},
		State:   claim.StateColumn{Name: "state", Pending: x.states[0], Processing: x.states[1], Done: x.states[2], Dead: x.states[3]},
		Due:     claim.DueTime{Column: column("due")},
		Payload: "payload", FixedKind: "k", Updated: column("updated"),
	}
	if def.Mode() != claim.Transition {
		def.Token, def.Holder, def.Lease = "token", "holder", column("lease")
		def.Attempts, def.Crashes, def.LastError = "attempts", "crashes", "err"
	}
	return def
}

const typedSQL = `
CREATE EXTENSION IF NOT EXISTS citext;
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE typed_state AS ENUM ('pending', 'it''s \ "busy"', 'done', 'dead', '[1]');
CREATE DOMAIN typed_domain AS varchar(20) NOT NULL;
CREATE DOMAIN typed_id AS varchar(40) CHECK (VALUE <> '');
CREATE DOMAIN typed_time AS bigint;`

// create makes the table and its two rows, due at base and 1 s later.
func (x typed) create() string {
	w := &writer{table: &Table{}}
	payload := "[1]"
	value := func(i int) string { return instant0(x.times, x.times.AtLeast(at(i))) }
	w.text(fmt.Sprintf("DROP TABLE IF EXISTS %[1]s; CREATE TABLE %[1]s (id %[2]s PRIMARY KEY, state %[3]s NOT NULL, due %[4]s, updated %[4]s, lease %[4]s,"+
		" token bigint, holder varchar(64), attempts smallint, crashes integer, err varchar(4096), payload %[5]s);", x.name, x.id, x.state, x.timeType, x.payload))
	for i, id := range x.ids {
		w.text(fmt.Sprintf("INSERT INTO %s (id, state, due, payload) VALUES (%s, %s, %s, '%s');", x.name, literal(claim.Text(string(id))), literal(x.states[0]), value(i), payload))
	}
	return w.String()
}

// instant0 is a literal.
func instant0(c claim.TimeColumn, value int64) string {
	if c.Integer() {
		return fmt.Sprint(value)
	}
	return "'" + instant(c, value) + "'"
}

// testTyped takes a table's rows through all steps.
func testTyped(t *testing.T, table *Table, x typed) {
	ctx := t.Context()
	fs, err := table.Verify(ctx)
	require.NoError(t, err)
	for _, f := range fs { // in a session elsewhere, on purpose: what dueclaim writes is right there
		if f.Code != "session-zone" && f.Code != "driver-zone" {
			require.Less(t, f.Severity, claim.Fault, "%s", fs)
		}
	}

	ids := append(append(append([]core.ID{}, x.strangers...), x.malformed...), x.ids...)
	rows := len(ids) - len(x.ids)
	waiting, err := table.Waiting(ctx, at(5), core.Entry{}, at(100), 10)
	require.NoError(t, err)
	entries := []core.Entry{{ID: x.ids[0], Due: at(0)}, {ID: x.ids[1], Due: at(1)}}
	require.Equal(t, entries, waiting)
	rest, err := table.Waiting(ctx, at(5), entries[0], at(100), 10)
	require.NoError(t, err)
	require.Equal(t, entries[1:], rest)
	for _, id := range ids[:rows] { // a cursor whose row isn't there
		_, err = table.Waiting(ctx, at(5), core.Entry{ID: id, Due: at(1)}, at(100), 10)
		require.NoError(t, err, "behind %q", id)
	}

	l := core.Lease{Holder: "h", Now: at(0), DueBy: at(0), Until: at(60)}
	claimed, err := table.Claim(ctx, ids, l)
	require.NoError(t, err)
	for i, c := range claimed[:len(x.strangers)] {
		assert.Equal(t, core.Gone.String(), c.Verdict.String(), "%q", ids[i])
	}
	for i, c := range claimed[len(x.strangers):rows] {
		assert.Equal(t, core.Refused.String(), c.Verdict.String(), "%q", x.malformed[i])
		require.ErrorIs(t, c.Err, core.ErrInvalid)
	}
	first := claimed[rows]
	require.Equal(t, core.Granted.String(), first.Verdict.String(), "%v", first.Err)
	assert.Equal(t, []any{"[1]", "k", at(60), at(0)}, []any{string(first.Task.Payload), first.Task.Kind, first.At, first.Task.Due})
	assert.Equal(t, core.Claimed{ID: x.ids[1], Verdict: core.NotDue, At: at(1)}, claimed[rows+1])
	if table.def.Mode() == claim.Transition {
		require.ErrorIs(t, table.Settle(ctx, at(1), []core.Settlement{{Grant: first.Grant, Outcome: core.Done}}), core.ErrUnfinished)
		job := &core.Job{Task: first.Task, Grant: first.Grant}
		r, err := table.runner(ctx)
		require.NoError(t, err)
		due := fmt.Sprintf("UPDATE %s SET due = 0 WHERE id = '%s'", table.name, first.ID) // by the clock of the job, too
		require.NoError(t, r.run(ctx, due, nil, func(scanner) error { return nil }))
		require.NoError(t, table.step(ctx, job, func(func(string) error) error { return nil }))
		require.NoError(t, table.Settle(ctx, at(1), []core.Settlement{{Grant: first.Grant, Outcome: core.Done}}))
		return
	}
	again, err := table.Claim(ctx, ids, l)
	require.NoError(t, err)
	assert.Equal(t, claimed, again, "a repeat")

	grants := []core.Grant{first.Grant}
	for _, id := range ids[:rows] {
		grants = append(grants, core.Grant{ID: id, Token: first.Grant.Token, Holder: "h"})
	}
	lost := map[int]error{}
	for i := range grants[1:] {
		lost[i+1] = core.ErrLeaseLost
	}
	requireItems(t, table.Extend(ctx, grants, at(90)), lost)
	settlements := func(outcome core.Outcome) (all []core.Settlement) {
		for _, g := range grants {
			all = append(all, core.Settlement{Grant: g, Outcome: outcome, Due: at(4), Err: `it's "bad"\`})
		}
		return all
	}
	requireItems(t, table.Settle(ctx, at(2), settlements(core.Retry)), lost)
	waiting, err = table.Waiting(ctx, at(5), core.Entry{}, at(100), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{entries[1], {ID: x.ids[0], Due: at(4)}}, waiting)
	l = core.Lease{Holder: "h2", Now: at(5), DueBy: at(5), Until: at(65)}
	claimed, err = table.Claim(ctx, ids, l)
	require.NoError(t, err)
	require.Equal(t, []core.Verdict{core.Granted, core.Granted}, []core.Verdict{claimed[rows].Verdict, claimed[rows+1].Verdict})
	assert.Equal(t, []int{2, 1}, []int{claimed[rows].Attempt, claimed[rows+1].Attempt})
	grants = []core.Grant{claimed[rows].Grant, claimed[rows+1].Grant}
	all := settlements(core.Done)
	all[1].Outcome = core.DeadLetter
	require.NoError(t, table.Settle(ctx, at(6), all))
	require.NoError(t, table.Settle(ctx, at(6), all), "a repeat")
	claimed, err = table.Claim(ctx, x.ids, core.Lease{Holder: "h3", Now: at(500), DueBy: at(500), Until: at(600)})
	require.NoError(t, err)
	assert.Equal(t, []core.Verdict{core.Gone, core.Gone}, []core.Verdict{claimed[0].Verdict, claimed[1].Verdict})
}

func TestTableOfEachTypeInEveryQueryExecMode(t *testing.T) {
	url := testserver.Postgres(t)
	simple := driver{native: true, mode: pgx.QueryExecModeSimpleProtocol}
	maker := simple.open(t, url, Options{})
	maker.exec(t, typedSQL)
	eachMode(t, func(t *testing.T, d driver) {
		// What the session says about times must not matter.
		d.session = map[string]string{"timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "extra_float_digits": "0"}
		s := d.open(t, url, Options{})
		for _, x := range typedTables() {
			t.Run(x.name, func(t *testing.T) {
				maker.exec(t, x.create())
				testTyped(t, s.onTable(t, x.def()), x)
			})
		}
	})
}

func TestTableBehindATransactionPooler(t *testing.T) {
	t.Attr("dueclaim.backend", pooled)
	url := testserver.Postgres(t)
	simple := driver{native: true, mode: pgx.QueryExecModeSimpleProtocol}
	maker := simple.open(t, url, Options{})
	maker.exec(t, typedSQL)
	pooler := testserver.PgBouncer(t, url)
	for _, d := range []driver{native, standard, simple} {
		s := d.open(t, pooler, Options{})
		for _, x := range typedTables() {
			t.Run(strings.Join([]string{d.name(), x.name}, "/"), func(t *testing.T) {
				maker.exec(t, x.create())
				testTyped(t, s.onTable(t, x.def()), x)
			})
		}
	}
}

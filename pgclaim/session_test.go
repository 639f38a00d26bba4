package pgclaim

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
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

// harmless are settings of a session with which every answer and every row is the same as
// without, in every way in which values travel.
var harmless = map[string][]string{
	"default_transaction_isolation":       {"repeatable read", "serializable"},
	"default_transaction_deferrable":      {"on"},
	"search_path":                         {""}, // with the schema in the table's name
	"row_security":                        {"off"},
	"lock_timeout":                        {"1ms"},
	"idle_in_transaction_session_timeout": {"5s"},
	"standard_conforming_strings":         {"off"}, // pgx itself refuses it in its simple protocol
	"backslash_quote":                     {"on"},
	"bytea_output":                        {"escape"},
	"DateStyle":                           {"SQL, DMY"},
	"IntervalStyle":                       {"sql_standard"},
	"TimeZone":                            {"Asia/Kathmandu"},
	"extra_float_digits":                  {"-15"},
	"array_nulls":                         {"off"},
	"transform_null_equals":               {"on"},
	"quote_all_identifiers":               {"on"},
	"session_replication_role":            {"replica"},
	"exit_on_error":                       {"on"},
	"plan_cache_mode":                     {"force_generic_plan", "force_custom_plan"},
	"enable_indexscan":                    {"off"},
	"enable_indexonlyscan":                {"off"},
	"enable_bitmapscan":                   {"off"},
	"enable_tidscan":                      {"off"},
	"enable_seqscan":                      {"off"},
	"enable_nestloop":                     {"off"},
	"enable_hashjoin":                     {"off"},
	"enable_mergejoin":                    {"off"},
	"enable_sort":                         {"off"},
	"enable_material":                     {"off"},
	"force_parallel_mode":                 {"on"}, // debug_parallel_query from Postgres 16 on
	"jit_above_cost":                      {"0"},
	"from_collapse_limit":                 {"1"},
	"join_collapse_limit":                 {"1"},
	"work_mem":                            {"64kB"},
}

// refusing are those with which a call fails before it has changed anything, and the
// sentence that says what to do.
var refusing = map[string]struct{ value, says string }{
	"client_encoding":               {"LATIN1", "the session's client_encoding is LATIN1; want UTF8"},
	"default_transaction_read_only": {"on", "the server is read-only; connect to the primary"},
	"statement_timeout":             {"50ms", "canceling statement due to statement timeout"},
}

// warned are those that work, and that CheckSetup warns of.
var warned = map[string]struct{ value, says string }{
	"synchronous_commit": {"off", "synchronous_commit is off"},
}

// idle ends connections in the pool, which is no failure of a call.
const idle = "idle_session_timeout"

// everything does all that a store does once, and returns what was answered and what
// stands in the table, but for what the server's clock wrote.
func everything(t *testing.T, s, watch *Store) string {
	t.Helper()
	var said strings.Builder
	say := func(v any, err error) {
		require.NoError(t, err)
		fmt.Fprintln(&said, v)
	}
	ctx := t.Context()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var in []core.Task
	ids := []core.ID{`q'uo"te`, `back\slash`, "NULL", "{a,b}", "日本", "A", "a", "é"}
	for i, id := range ids {
		in = append(in, core.Task{ID: id, Kind: `k'\`, Payload: all, Meta: []byte{0, byte(i)}, Due: at(i)})
	}
	say(nil, s.Insert(ctx, call("c1"), in))
	say(nil, s.Insert(ctx, call("c1"), in))
	say(nil, existing(s.Insert(ctx, call("c2"), in[:1])))
	waiting, err := s.Waiting(ctx, at(0), core.Entry{}, at(100), 100)
	say(waiting, err)
	l := lease("h", 20)
	l.By = time.Now().Add(time.Hour)
	var grants []core.Grant
	for range 2 {
		claimed, err := s.Claim(ctx, ids[:6], l)
		require.NoError(t, err)
		grants = grants[:0]
		for i, c := range claimed {
			require.Equal(t, core.Granted, c.Verdict)
			require.True(t, bytes.Equal(all, c.Task.Payload) && bytes.Equal(in[i].Meta, c.Task.Meta), "%q", c.Task.Payload)
			grants = append(grants, c.Grant)
			c.Grant.Token = 0
			say(c, nil)
		}
	}
	say(nil, s.Extend(ctx, grants, at(60)))
	say(nil, s.Settle(ctx, at(21), []core.Settlement{
		{Grant: grants[0], Outcome: core.Done}, {Grant: grants[1], Outcome: core.Retry, Due: at(90), Err: `it's "bad"\`},
		{Grant: grants[2], Outcome: core.Released, Due: at(91)}, {Grant: grants[3], Outcome: core.DeadLetter, Err: "é"},
	}))
	tx := s.begin(t, ctx)
	say(nil, tx.settle(ctx, at(22), core.Settlement{Grant: grants[4], Outcome: core.Done}))
	say(nil, tx.insert(ctx, call("c3"), task("in-tx", 0)))
	say(nil, tx.commit(ctx))
	say(nil, s.Insert(ctx, call("c4"), []core.Task{task(`q'uo"te`, 7)}))
	say(nil, s.Reschedule(ctx, call("m"), []core.Move{{ID: "a", From: at(6), To: at(99)}}))
	fates, err := s.Cancel(ctx, call("x"), []core.ID{"A", "a", "none", "日本"})
	say(fates, err)
	purged, err := s.Purge(ctx, at(1), 10)
	say(purged, err)
	now, err := s.Now(ctx)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), now, time.Minute)
	require.NoError(t, s.Probe(ctx))
	require.NoError(t, s.Migrate(ctx))
	say(strings.Join(watch.text(t, "SELECT (to_jsonb(t) - 'token')::text FROM "+s.quoted()+" AS t ORDER BY id"), "\n"), nil)
	watch.exec(t, "DELETE FROM "+s.quoted())
	return said.String()
}

func existing(err error) error {
	if !strings.Contains(fmt.Sprint(err), core.ErrExists.Error()) {
		return fmt.Errorf("want %w, got %w", core.ErrExists, err)
	}
	return nil
}

func TestSettingsOfASessionThatMakeNoDifference(t *testing.T) {
	url := testserver.Postgres(t)
	ways := []driver{native, {mode: pgx.QueryExecModeExec}}
	if stress() {
		ways = append(ways, driver{native: true, mode: pgx.QueryExecModeSimpleProtocol})
	}
	o := Options{Table: "public.tasks"}
	owner := native.open(t, url, o)
	require.NoError(t, owner.Migrate(t.Context()))
	table := makeOrders(t, owner)
	wantStore, wantTable := everything(t, owner, owner), everythingOf(t, owner, owner, table)
	for _, name := range slices.Sorted(maps.Keys(harmless)) {
		if len(owner.text(t, "SELECT name FROM pg_settings WHERE name = $1::text", name)) == 0 {
			t.Logf("NOT tested: this server has no %s", name)
			continue
		}
		for _, value := range harmless[name] {
			for _, d := range ways {
				if name == "standard_conforming_strings" && d.mode == pgx.QueryExecModeSimpleProtocol {
					continue
				}
				d.session = map[string]string{name: value}
				t.Run(fmt.Sprintf("%s=%s, %s", name, value, d.name()), func(t *testing.T) {
					t.Attr("dueclaim.backend", d.backend())
					s := d.open(t, url, o)
					require.Equal(t, []string{value}, s.text(t, "SELECT current_setting($1::text)", name), "the setting holds")
					assert.Equal(t, wantStore, everything(t, s, owner))
					assert.Equal(t, wantTable, everythingOf(t, s, owner, table))
				})
			}
		}
	}
}

func TestSettingsOfASessionThatAreRefused(t *testing.T) {
	url := testserver.Postgres(t)
	owner := native.open(t, url, Options{})
	require.NoError(t, owner.Migrate(t.Context()))
	ready(t, owner)
	before := owner.rows(t)
	for name, r := range refusing {
		eachDriver(t, func(t *testing.T, d driver) {
			d.session = map[string]string{name: r.value}
			s := d.open(t, url, Options{})
			lock := owner.begin(t, t.Context())
			if name == "statement_timeout" { // something to wait for
				require.NoError(t, lock.exec(t.Context(), "LOCK TABLE dueclaim_tasks IN SHARE ROW EXCLUSIVE MODE"))
			}
			for op, write := range writes(s) {
				err := write(t.Context(), time.Time{})
				require.ErrorContains(t, err, r.says, "%s: %s", name, op)
				require.ErrorIs(t, err, core.ErrNotDone, "%s: %s", name, op)
			}
			lock.rollback()
			require.Equal(t, before, owner.rows(t))
		})
	}
}

// A role that a policy concerns would see less than there is, or nothing.
func TestRowSecurityThatIsOffIsAnErrorWhereAPolicyHidesRows(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		owner := d.open(t, url, Options{})
		require.NoError(t, owner.Migrate(t.Context()))
		role, login := worker(t, owner, url)
		owner.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON dueclaim_tasks TO "+role)
		owner.exec(t, "ALTER TABLE dueclaim_tasks ENABLE ROW LEVEL SECURITY")
		owner.exec(t, "CREATE POLICY mine ON dueclaim_tasks USING (queue = 'mine')")
		mine := d.open(t, login, Options{Queue: "mine"})
		require.NoError(t, mine.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		mine.claimOne(t, "a", lease("h", 0))
		d.session = map[string]string{"row_security": "off"}
		for op, write := range writes(d.open(t, login, Options{Queue: "mine"})) {
			err := write(t.Context(), time.Time{})
			require.ErrorContains(t, err, "query would be affected by row-level security policy", op)
			require.ErrorIs(t, err, core.ErrNotDone, op)
		}
	})
}

func TestSettingsOfASessionThatAreWarnedOf(t *testing.T) {
	url := testserver.Postgres(t)
	for name, w := range warned {
		eachDriver(t, func(t *testing.T, d driver) {
			d.session = map[string]string{name: w.value}
			warnings, err := d.open(t, url, Options{}).CheckSetup(t.Context())
			require.NoError(t, err)
			require.Contains(t, strings.Join(warnings, "\n"), w.says)
		})
	}
}

// The server ends connections that idle in the pool.
func TestASessionThatIdledTooLongIsNoFailure(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		watch := native.open(t, url, Options{})
		d.session = map[string]string{idle: "100ms", "application_name": "idler"}
		s := d.open(t, url, Options{})
		require.NoError(t, s.Migrate(t.Context()))
		require.Eventually(t, func() bool {
			return watch.text(t, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'idler'")[0] == "0"
		}, 20*time.Second, 20*time.Millisecond)
		if err := s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}); err != nil {
			require.ErrorIs(t, err, core.ErrNotDone)
			require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		}
	})
}

// docs/operations.md has a row for each setting that is tested here, and no other.
func TestTheTableOfSessionSettingsIsTheOneThatIsTested(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "### Postgres' settings\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n#")
	documented := map[string]bool{}
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, name := range regexp.MustCompile("`([A-Za-z_]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			documented[name[1]] = true
		}
	}
	tested := map[string]bool{idle: true}
	for _, names := range []map[string]bool{keys(harmless), keys(refusing), keys(warned)} {
		maps.Copy(tested, names)
	}
	assert.Equal(t, slices.Sorted(maps.Keys(tested)), slices.Sorted(maps.Keys(documented)))
}

func keys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// makeOrders makes a table of the user's.
func makeOrders(t *testing.T, s *Store) claim.Table {
	s.exec(t, `CREATE TABLE public.orders (id text PRIMARY KEY, status text NOT NULL, due timestamptz, body bytea, token bigint, holder text, lease timestamptz)`)
	return claim.Table{
		Name: "public.orders", ID: claim.IDColumn{Name: "id", Kind: claim.TextID},
		State:   claim.StateColumn{Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("taken"), Done: claim.Text("done")},
		Due:     claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.Timestamp, Digits: 6}},
		Payload: "body", Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease", Kind: claim.Timestamp, Digits: 6},
	}
}

// everythingOf is everything for a table.
func everythingOf(t *testing.T, s, watch *Store, def claim.Table) string {
	t.Helper()
	ctx := t.Context()
	watch.exec(t, "INSERT INTO public.orders (id, status, due, body) SELECT id, 'pending', to_timestamp($1::bigint), '\\x00ff27' FROM unnest(ARRAY['a', 'b', 'NULL']) AS id", at(0).Unix())
	table, err := newTable(s.handle, def)
	require.NoError(t, err)
	ids := []core.ID{"a", "b", "NULL", "none"}
	waiting, err := table.Waiting(ctx, at(0), core.Entry{}, at(100), 100)
	require.NoError(t, err)
	var grants []core.Grant
	for range 2 {
		claimed, err := table.Claim(ctx, ids, lease("h", 20))
		require.NoError(t, err)
		require.Equal(t, core.Gone, claimed[3].Verdict)
		grants = grants[:0]
		for _, c := range claimed[:3] {
			require.Equal(t, core.Granted, c.Verdict)
			require.Equal(t, []byte{0, 255, 39}, c.Task.Payload)
			grants = append(grants, c.Grant)
		}
	}
	require.NoError(t, table.Extend(ctx, grants, at(60)))
	require.NoError(t, table.Settle(ctx, at(21), []core.Settlement{
		{Grant: grants[0], Outcome: core.Done}, {Grant: grants[1], Outcome: core.Retry, Due: at(90)}, {Grant: grants[2], Outcome: core.Released, Due: at(91)},
	}))
	require.NoError(t, table.Probe(ctx))
	rows := watch.text(t, "SELECT concat_ws(' ', id, status, extract(epoch FROM due), holder, extract(epoch FROM lease)) FROM public.orders ORDER BY id")
	watch.exec(t, "DELETE FROM public.orders")
	return fmt.Sprintln(waiting, rows)
}

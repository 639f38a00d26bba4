package sqliteclaim_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones also where the machine has none

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/sqliteclaim"
)

// recipeSQL is the recipe's table, with an index for sweeps.
const recipeSQL = `
CREATE TABLE orders (
	order_id   VARCHAR(50) PRIMARY KEY,
	status     TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'cancelled', 'completed')),
	created_at DATETIME NOT NULL,
	updated_at DATETIME DEFAULT NULL
);
CREATE INDEX orders_due ON orders (status, created_at, order_id);`

func recipe() claim.Table {
	return claim.Table{
		Name:     "orders",
		ID:       claim.IDColumn{Name: "order_id"},
		State:    claim.StateColumn{Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("cancelled")},
		Due:      claim.DueTime{Base: claim.TimeColumn{Name: "created_at", Kind: claim.DateTime, Zone: time.UTC}, After: 30 * time.Minute},
		Updated:  claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.UTC},
		LeaseFor: 30 * time.Second,
	}
}

// fullSQL is a table with all that mode Full takes.
const fullSQL = `
CREATE TABLE jobs (
	id       TEXT NOT NULL PRIMARY KEY,
	shop     INTEGER NOT NULL,
	state    TEXT NOT NULL DEFAULT 'new',
	due_ms   INTEGER NOT NULL,
	token    INTEGER NOT NULL DEFAULT 0,
	holder   TEXT NOT NULL DEFAULT '',
	lease    INTEGER,
	tries    INTEGER NOT NULL DEFAULT 0,
	crashes  INTEGER NOT NULL DEFAULT 0,
	error    TEXT,
	kind     TEXT NOT NULL DEFAULT 'k',
	body     BLOB
);
CREATE INDEX jobs_due ON jobs (shop, state, due_ms, id);`

func full() claim.Table {
	return claim.Table{
		Name: "jobs", ID: claim.IDColumn{Name: "id"},
		State: claim.StateColumn{Name: "state", Pending: claim.Text("new"), Processing: claim.Text("busy"), Done: claim.Text("done"), Dead: claim.Text("dead")},
		Due:   claim.DueTime{Column: claim.TimeColumn{Name: "due_ms"}}, Where: []claim.Condition{{Column: "shop", Equals: claim.Int(7)}},
		Token: "token", Holder: "holder", Lease: claim.TimeColumn{Name: "lease"}, Attempts: "tries", Crashes: "crashes",
		LastError: "error", Payload: "body", Kind: "kind",
	}
}

// transition is the recipe's table without a state for processing.
func transition() claim.Table {
	def := recipe()
	def.State.Processing, def.LeaseFor = claim.Value{}, 0
	return def
}

// bad are the findings that ask for something to be done.
func bad(fs claim.Findings) []string {
	var all []string
	for _, f := range fs {
		if f.Severity >= claim.Warning {
			all = append(all, f.Code+" "+f.Column)
		}
	}
	return all
}

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

func verify(t testing.TB, db *sql.DB, def claim.Table) claim.Findings {
	t.Helper()
	table, err := sqliteclaim.NewTable(db, def)
	require.NoError(t, err)
	fs, err := table.Verify(t.Context())
	require.NoError(t, err)
	return fs
}

// contents is all that is in the file.
func contents(t testing.TB, db *sql.DB) []string {
	t.Helper()
	all := column(t, db, "SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY name")
	for _, name := range column(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name") {
		for _, c := range column(t, db, "SELECT name FROM pragma_table_xinfo(?)", name) {
			all = append(all, column(t, db, `SELECT quote("`+c+`") FROM "`+name+`"`)...)
		}
	}
	return all
}

func TestVerifyFindsNothingWrongWithATableAsItShouldBe(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	db := usersDB(t, file(t))
	execute(t, db, recipeSQL, fullSQL,
		`INSERT INTO orders (order_id, created_at) VALUES ('a', datetime('now')), ('b', '2030-01-02 03:04:05')`,
		`INSERT INTO jobs (id, shop, due_ms) VALUES ('a', 7, 1893456000000), ('b', 7, 0)`,
		`CREATE TABLE strict_jobs (n INTEGER PRIMARY KEY, state INT NOT NULL, at TEXT NOT NULL) STRICT`,
		`CREATE INDEX strict_due ON strict_jobs (state, at)`,
		`CREATE TABLE plain (u UUID PRIMARY KEY NOT NULL, open BOOLEAN NOT NULL, at TIMESTAMP NOT NULL) WITHOUT ROWID`,
		`CREATE INDEX plain_due ON plain (open, at)`)
	before := contents(t, db)
	for name, def := range map[string]claim.Table{
		"full": full(), "status and updated": recipe(), "transition": transition(),
		"strict, integers": {
			Name: "STRICT_jobs", ID: claim.IDColumn{Name: "n", Kind: claim.IntegerID}, State: claim.StateColumn{Name: "State", Pending: claim.Int(1), Done: claim.Int(2)},
			Due: claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.DateTime, Digits: 3, Zone: time.UTC}},
		},
		"without rowid, loose types": {
			Name: "plain", ID: claim.IDColumn{Name: "u", Kind: claim.UUIDID}, State: claim.StateColumn{Name: "open", Pending: claim.Bool(true), Done: claim.Bool(false)},
			Due: claim.DueTime{Base: claim.TimeColumn{Name: "at", Kind: claim.UnixSecond}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := verify(t, db, def)
			if def.Mode() == claim.StatusUpdated {
				require.Equal(t, []string{"nullable updated_at"}, bad(fs), fs.String())
			} else {
				require.Empty(t, bad(fs), fs.String())
			}
			require.Subset(t, fs, def.Promises())
			require.True(t, slices.IsSortedFunc(fs, func(a, b claim.Finding) int { return int(b.Severity) - int(a.Severity) }))
		})
	}
	require.Equal(t, before, contents(t, db), "Verify changes nothing")
}

// fault is a table with something wrong.
type fault struct {
	of         string // what is replaced in fullSQL or recipeSQL
	by         string
	also       string // statements after the table was made
	def        func(*claim.Table)
	severity   claim.Severity
	code       string
	column     string
	reason     string
	onlyWarned bool // the mend is no statement
}

func TestVerifyFindsEachFault(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	const insert = "INSERT INTO jobs (id, shop, due_ms) VALUES "
	ofJobs := map[string]fault{
		"no table":                 {def: func(d *claim.Table) { d.Name = "job" }, severity: claim.Fault, code: "table-missing", onlyWarned: true},
		"a view":                   {also: "CREATE VIEW v AS SELECT * FROM jobs", def: func(d *claim.Table) { d.Name = "v" }, severity: claim.Fault, code: "not-a-table", reason: "view", onlyWarned: true},
		"a virtual table":          {also: "CREATE VIRTUAL TABLE v USING fts5(id)", def: func(d *claim.Table) { d.Name = "v" }, severity: claim.Fault, code: "not-a-table", reason: "virtual", onlyWarned: true},
		"no token":                 {of: "token    INTEGER NOT NULL DEFAULT 0,", severity: claim.Fault, code: "column-missing", column: "token"},
		"no lease":                 {of: "lease    INTEGER,", severity: claim.Fault, code: "column-missing", column: "lease"},
		"no payload":               {of: "body     BLOB", by: "b", severity: claim.Fault, code: "column-missing", column: "body", onlyWarned: true},
		"token of text":            {of: "token    INTEGER", by: "token TEXT", severity: claim.Fault, code: "column-type", column: "token", onlyWarned: true},
		"due of text":              {of: "due_ms   INTEGER", by: "due_ms VARCHAR(20)", severity: claim.Fault, code: "column-type", column: "due_ms", onlyWarned: true},
		"due as a real":            {of: "due_ms   INTEGER", by: "due_ms REAL", severity: claim.Fault, code: "column-type", column: "due_ms", onlyWarned: true},
		"holder a number":          {of: "holder   TEXT", by: "holder STRING", severity: claim.Fault, code: "column-type", column: "holder", onlyWarned: true},
		"id a number":              {of: "id       TEXT", by: "id STRING", severity: claim.Fault, code: "column-type", column: "id", onlyWarned: true},
		"state a number":           {of: "state    TEXT", by: "state INTEGER", severity: claim.Fault, code: "column-type", column: "state", onlyWarned: true},
		"state looks like one":     {of: "state    TEXT", by: "state STRING", def: func(d *claim.Table) { d.State.Done = claim.Text("1e3") }, severity: claim.Fault, code: "column-type", column: "state", onlyWarned: true},
		"condition of text":        {of: "shop     INTEGER", by: "shop TEXT", severity: claim.Fault, code: "column-type", column: "shop", onlyWarned: true},
		"id not unique":            {of: "PRIMARY KEY", severity: claim.Fault, code: "id-not-unique", column: "id"},
		"id unique for some":       {of: "PRIMARY KEY", also: "CREATE UNIQUE INDEX u ON jobs (id) WHERE state = 'new'", severity: claim.Fault, code: "id-not-unique", column: "id"},
		"id unique with others":    {of: "PRIMARY KEY", also: "CREATE UNIQUE INDEX u ON jobs (id, shop)", severity: claim.Fault, code: "id-not-unique", column: "id"},
		"id may be NULL":           {of: "NOT NULL PRIMARY KEY", by: "UNIQUE", severity: claim.Fault, code: "id-nullable", column: "id"},
		"primary key may be NULL":  {of: "NOT NULL PRIMARY KEY", by: "PRIMARY KEY", severity: claim.Advice, code: "id-nullable", column: "id"},
		"CHECK without a value":    {of: "DEFAULT 'new'", by: "DEFAULT 'new' CHECK (state IN ('new', 'busy', 'done'))", severity: claim.Fault, code: "check-lacks-value", column: "state", reason: `"dead"`, onlyWarned: true},
		"CHECK of the holder":      {of: "DEFAULT ''", by: "DEFAULT '' CHECK (length(holder) <= 20)", severity: claim.Fault, code: "check", reason: "length(holder) <= 20", onlyWarned: true},
		"CHECK with own functions": {of: "body     BLOB", by: "body BLOB CHECK (own_function(body)), CHECK (shop > 0)", severity: claim.Info, code: "check-unknown", reason: "own_function", onlyWarned: true},
		"generated":                {of: "tries    INTEGER NOT NULL DEFAULT 0", by: "tries INTEGER AS (token + 1)", severity: claim.Fault, code: "generated", column: "tries", onlyWarned: true},
		"lease NOT NULL":           {of: "lease    INTEGER", by: "lease INTEGER NOT NULL DEFAULT 0", severity: claim.Fault, code: "lease-not-null", column: "lease"},
		"id NOCASE":                {of: "id       TEXT", by: "id TEXT COLLATE NOCASE", severity: claim.Warning, code: "id-collation", column: "id", onlyWarned: true},
		"id RTRIM":                 {of: "id       TEXT", by: "id TEXT COLLATE RTRIM", severity: claim.Warning, code: "id-padded", column: "id", onlyWarned: true},
		"state NOCASE":             {of: "state    TEXT", by: "state TEXT COLLATE NOCASE", severity: claim.Warning, code: "state-collation", column: "state", onlyWarned: true},
		"index NOCASE":             {of: "PRIMARY KEY", by: "", also: "CREATE UNIQUE INDEX u ON jobs (id COLLATE NOCASE)", severity: claim.Warning, code: "id-scan", column: "id"},
		"state may be NULL":        {of: "NOT NULL DEFAULT 'new'", by: "DEFAULT 'new'", severity: claim.Warning, code: "nullable", column: "state"},
		"due may be NULL":          {of: "due_ms   INTEGER NOT NULL", by: "due_ms INTEGER", severity: claim.Warning, code: "nullable", column: "due_ms"},
		"holder to be filled":      {of: "holder   TEXT NOT NULL DEFAULT ''", by: "holder TEXT NOT NULL", severity: claim.Warning, code: "not-null-without-default", column: "holder"},
		"no index":                 {of: "CREATE INDEX jobs_due ON jobs (shop, state, due_ms, id);", severity: claim.Warning, code: "due-index-missing", column: "due_ms"},
		"index in another order":   {of: "(shop, state, due_ms, id)", by: "(shop, due_ms, state, id)", severity: claim.Warning, code: "due-index-missing", column: "due_ms"},
		"index of due times":       {of: "(shop, state, due_ms, id)", by: "(due_ms, id)", severity: claim.Warning, code: "due-index-missing", column: "due_ms"},
		"index for some":           {of: "(shop, state, due_ms, id)", by: "(shop, state, due_ms, id) WHERE state = 'new'", severity: claim.Warning, code: "due-index-missing", column: "due_ms"},
		"lease indexed":            {also: "CREATE INDEX by_lease ON jobs (lease)", severity: claim.Advice, code: "lease-indexed", column: "lease", reason: "by_lease", onlyWarned: true},
		"trigger":                  {also: `CREATE TRIGGER "on change" AFTER UPDATE OF state ON jobs BEGIN SELECT 1; END`, severity: claim.Warning, code: "trigger", reason: "on change", onlyWarned: true},
		"due in seconds":           {also: insert + "('a', 7, 1893456000)", severity: claim.Fault, code: "time-format", column: "due_ms", reason: "such as 1893456000", onlyWarned: true},
		"due as text":              {also: insert + "('a', 7, 1893456000000), ('b', 7, '2030-01-01 12:00:00')", severity: claim.Fault, code: "time-format", column: "due_ms", reason: "1 of 2 rows", onlyWarned: true},
		"ids as numbers":           {of: "id       TEXT", by: "id BLOB", also: insert + "(17, 7, 0)", severity: claim.Warning, code: "id-form", column: "id", reason: "17", onlyWarned: true},
		"trigger on the token":     {also: "CREATE TRIGGER touch AFTER UPDATE ON jobs BEGIN UPDATE jobs SET token = 0 WHERE id = new.id; END", severity: claim.Fault, code: "trigger", column: "token", onlyWarned: true},
		"index with more":          {also: "CREATE INDEX more ON jobs (shop, holder)", severity: claim.Advice, code: "lease-indexed", column: "holder", onlyWarned: true},
	}
	ofOrders := map[string]fault{
		"base may be NULL":    {of: "created_at DATETIME NOT NULL", by: "created_at DATETIME", severity: claim.Warning, code: "nullable", column: "created_at"},
		"updated may be NULL": {severity: claim.Warning, code: "nullable", column: "updated_at"},
		"whole seconds":       {severity: claim.Advice, code: "time-without-fraction", column: "created_at", onlyWarned: true},
		"base in a number":    {of: "created_at DATETIME", by: "created_at INTEGER", severity: claim.Fault, code: "column-type", column: "created_at", onlyWarned: true},
		"as Go writes it": {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', '2030-01-01 12:00:00 +0000 UTC'), ('b', '2030-01-01 12:00:00')`,
			severity: claim.Warning, code: "time-format", column: "created_at", reason: "1 of 2 rows that were looked at hold a value of another form than 2030-01-02 03:04:05, such as '2030-01-01 12:00:00 +0000 UTC'", onlyWarned: true},
		"with a T":        {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', '2030-01-01T12:00:00')`, severity: claim.Warning, code: "time-format", column: "created_at", onlyWarned: true},
		"no such day":     {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', '2030-02-31 12:00:00')`, severity: claim.Warning, code: "time-format", column: "created_at", onlyWarned: true},
		"as a number":     {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', 1893456000)`, severity: claim.Fault, code: "time-format", column: "created_at", reason: "1893456000", onlyWarned: true},
		"default in UTC":  {of: "created_at DATETIME NOT NULL", by: "created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", def: func(d *claim.Table) { d.Due.Base.Zone = time.FixedZone("X", 3600) }, severity: claim.Fault, code: "session-zone", column: "created_at", onlyWarned: true},
		"summer time":     {def: func(d *claim.Table) { d.Due.Base.Zone = berlin(t) }, severity: claim.Advice, code: "summer-time", column: "created_at", onlyWarned: true},
		"default not UTC": {of: "created_at DATETIME NOT NULL", by: "created_at DATETIME NOT NULL DEFAULT (datetime('now', 'localtime'))", severity: claim.Warning, code: "session-zone", column: "created_at", onlyWarned: true},
		"trigger on all":  {also: `CREATE TRIGGER touch AFTER UPDATE ON orders BEGIN UPDATE orders SET updated_at = datetime('now') WHERE order_id = new.order_id; END`, severity: claim.Fault, code: "trigger", column: "updated_at", reason: "touch sets it in each UPDATE", onlyWarned: true},
		"polite trigger":  {also: `CREATE TRIGGER touch AFTER UPDATE ON orders WHEN new.updated_at IS old.updated_at BEGIN UPDATE orders SET updated_at = datetime('now') WHERE order_id = new.order_id; END`, severity: claim.Warning, code: "trigger", reason: "such as updated_at", onlyWarned: true},
		"trigger of a Transition": {also: `CREATE TRIGGER touch AFTER UPDATE ON orders BEGIN UPDATE orders SET updated_at = datetime('now') WHERE order_id = new.order_id; END`,
			def: func(d *claim.Table) { *d = transition() }, severity: claim.Advice, code: "trigger", onlyWarned: true},
		"of another clock": {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', '2030-01-01 12:00:00.5 -0500 EST m=+0.1'), ('b', '2030-01-01 12:00:00-05:00')`,
			severity: claim.Fault, code: "time-format", column: "created_at", reason: "2 of 2 rows", onlyWarned: true},
		"of another clock, but done": {also: `INSERT INTO orders (order_id, status, created_at) VALUES ('a', 'cancelled', '2030-01-01 12:00:00-05:00')`,
			severity: claim.Warning, code: "time-format", column: "created_at", onlyWarned: true},
		"UTC in another zone": {also: `INSERT INTO orders (order_id, created_at) VALUES ('a', '2030-01-01 12:00:00Z')`,
			def: func(d *claim.Table) { d.Due.Base.Zone = time.FixedZone("X", 3600) }, severity: claim.Fault, code: "time-format", column: "created_at", onlyWarned: true},
		"driver writes another clock": {def: func(d *claim.Table) { d.Due.Base.Zone = time.FixedZone("X", 3600) }, severity: claim.Advice, code: "driver-zone", column: "created_at", reason: "such a row is never claimed", onlyWarned: true},
		"local default elsewhere":     {of: "created_at DATETIME NOT NULL", by: "created_at DATETIME NOT NULL DEFAULT (datetime('now', 'localtime'))", def: func(d *claim.Table) { d.Due.Base.Zone = time.FixedZone("X", 3600) }, severity: claim.Fault, code: "session-zone", column: "created_at", onlyWarned: true},
		"updated indexed":             {also: "CREATE INDEX by_change ON orders (updated_at)", severity: claim.Advice, code: "lease-indexed", column: "updated_at", onlyWarned: true},
		"CHECK lacks":                 {of: "'processing', ", severity: claim.Fault, code: "check-lacks-value", column: "status", reason: `"processing"`, onlyWarned: true},
		"integers as text":            {def: func(d *claim.Table) { d.ID.Kind = claim.IntegerID }, severity: claim.Fault, code: "column-type", column: "order_id", onlyWarned: true},
		"no uuid": {def: func(d *claim.Table) { d.ID.Kind = claim.UUIDID }, also: `INSERT INTO orders (order_id, created_at) VALUES ('0A234567-89ab-cdef-0123-456789abcdef', '2030-01-01 12:00:00')`,
			severity: claim.Warning, code: "id-form", column: "order_id", onlyWarned: true},
		"no 16 bytes": {def: func(d *claim.Table) { d.ID.Kind = claim.BinaryUUIDID }, also: `INSERT INTO orders (order_id, created_at) VALUES (x'00', '2030-01-01 12:00:00')`,
			severity: claim.Warning, code: "id-form", column: "order_id", onlyWarned: true},
	}
	run := func(prefix, ddl string, def func() claim.Table, faults map[string]fault) {
		for name, f := range faults {
			t.Run(prefix+": "+name, func(t *testing.T) {
				require.True(t, strings.Contains(ddl, f.of), "the table has no %q", f.of)
				if f.of != "" {
					ddl := strings.Replace(ddl, f.of, f.by, 1)
					f.check(t, ddl, def())
				} else {
					f.check(t, ddl, def())
				}
			})
		}
	}
	run("jobs", fullSQL, full, ofJobs)
	run("orders", recipeSQL, recipe, ofOrders)
}

func berlin(t *testing.T) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return zone
}

func (f fault) check(t *testing.T, ddl string, def claim.Table) {
	// In memory, which is quicker; that is a fault of its own.
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	if strings.Contains(f.by, "own_function") {
		execute(t, db, "PRAGMA writable_schema = 1", strings.ReplaceAll(ddl, "own_function(body)", "body"),
			"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (body)', 'CHECK (own_function(body))') WHERE name = 'jobs'", "PRAGMA writable_schema = 0")
	} else {
		execute(t, db, ddl)
	}
	if f.also != "" {
		execute(t, db, f.also)
	}
	if f.def != nil {
		f.def(&def)
	}
	before := contents(t, db)
	fs := verify(t, db, def)
	require.Equal(t, before, contents(t, db), "Verify changes nothing")
	is := func(g claim.Finding) bool { return g.Code == f.code && g.Column == f.column }
	i := slices.IndexFunc(fs, is)
	require.GreaterOrEqual(t, i, 0, fs.String())
	require.Equal(t, f.severity, fs[i].Severity)
	require.Contains(t, fs[i].Reason, f.reason)
	if f.onlyWarned {
		return
	}
	execute(t, db, fs[i].Mend)
	fs = verify(t, db, def)
	require.False(t, slices.ContainsFunc(fs, is), fs.String())
}

func TestVerifyFindsWhatTheConnectionIsSetTo(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	path := file(t)
	execute(t, usersDB(t, path), recipeSQL)
	journal := filepath.Join(t.TempDir(), "journal.db")
	for name, c := range map[string]struct {
		dsn      string
		make     string
		severity claim.Severity
		code     string
	}{
		"query only":     {"file:" + path + "?_pragma=query_only(1)", "", claim.Fault, "read-only"},
		"read-only":      {"file:" + path + "?mode=ro", "", claim.Fault, "read-only"},
		"in memory":      {":memory:", recipeSQL, claim.Fault, "in-memory"},
		"not WAL":        {"file:" + journal, recipeSQL, claim.Advice, "journal-mode"},
		"OFF":            {"file:" + path + "?_pragma=synchronous(OFF)", "", claim.Warning, "synchronous-off"},
		"NORMAL":         {"file:" + path + "?_pragma=synchronous(NORMAL)", "", claim.Advice, "synchronous-normal"},
		"no wait":        {"file:" + path, "", claim.Advice, "busy-timeout"},
		"NORMAL, no WAL": {"file:" + journal + "?_pragma=synchronous(NORMAL)", "", 0, "synchronous-normal"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open("sqlite", c.dsn)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			db.SetMaxOpenConns(1)
			if c.make != "" {
				execute(t, db, c.make)
			}
			fs := verify(t, db, recipe())
			i := slices.IndexFunc(fs, func(f claim.Finding) bool { return f.Code == c.code })
			if c.severity == 0 {
				require.Negative(t, i, fs.String())
				return
			}
			require.GreaterOrEqual(t, i, 0, fs.String())
			require.Equal(t, c.severity, fs[i].Severity)
		})
	}
}

func TestVerifyFailsOnAFileThatItCannotRead(t *testing.T) {
	path := file(t)
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database, but a text\n", 100)), 0o600))
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	table, err := sqliteclaim.NewTable(db, recipe())
	require.NoError(t, err)
	_, err = table.Verify(t.Context())
	require.ErrorContains(t, err, "sqliteclaim: table orders: verify: the file is not a SQLite database")
	_, err = table.Suggest(t.Context())
	require.ErrorContains(t, err, "sqliteclaim: table orders: suggest: ")
}

func TestNewTableRefusesWhatSQLiteHasNot(t *testing.T) {
	for want, change := range map[string]func(*claim.Table){
		"without a schema": func(d *claim.Table) { d.Name = "main.orders" },
		"no Timestamp":     func(d *claim.Table) { d.Updated.Kind = claim.Timestamp },
		"at most 3":        func(d *claim.Table) { d.Due.Base.Digits = 4 },
		"table name":       func(d *claim.Table) { d.Name = `or"ders` },
		"State.Done":       func(d *claim.Table) { d.State.Done = claim.Value{} },
	} {
		def := recipe()
		change(&def)
		db := usersDB(t, file(t))
		_, err := sqliteclaim.NewTable(db, def)
		require.ErrorContains(t, err, "sqliteclaim: new table: ")
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, core.ErrInvalid)
		path := file(t)
		_, err = sqliteclaim.OpenTable(t.Context(), path, def)
		require.ErrorIs(t, err, core.ErrInvalid)
		require.NoFileExists(t, path)
	}
}

func TestSuggestLeadsToFull(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	for name, strict := range map[string]string{"": ")", "strict": ") STRICT"} {
		t.Run(name, func(t *testing.T) {
			ddl, _, _ := strings.Cut(recipeSQL, ";")
			ddl = strings.TrimSuffix(ddl, ")") + strict
			if strict != ")" {
				ddl = strings.NewReplacer("VARCHAR(50)", "TEXT", "DATETIME", "TEXT").Replace(ddl)
			}
			def := recipe()
			table, err := sqliteclaim.OpenTable(t.Context(), file(t), def)
			require.NoError(t, err)
			defer func() { require.NoError(t, table.Close()) }()
			_, err = table.Suggest(t.Context())
			require.ErrorContains(t, err, "no table")
			execute(t, table.DB(), ddl)
			const insert = `INSERT INTO orders (order_id, created_at) VALUES (?, datetime('now'))`
			_, err = table.DB().ExecContext(t.Context(), insert, "a")
			require.NoError(t, err)

			statements, err := table.Suggest(t.Context())
			require.NoError(t, err)
			require.Len(t, statements, 7)
			execute(t, table.DB(), statements...)
			_, err = table.DB().ExecContext(t.Context(), insert, "b")
			require.NoError(t, err, "the user's own INSERT")
			statements, err = table.Suggest(t.Context())
			require.NoError(t, err)
			require.Empty(t, statements)

			def.LeaseFor = 0
			def.Token, def.Holder, def.Lease = "dueclaim_token", "dueclaim_holder", claim.TimeColumn{Name: "dueclaim_lease"}
			def.Attempts, def.Crashes, def.LastError = "dueclaim_attempts", "dueclaim_crashes", "dueclaim_error"
			whole, err := sqliteclaim.NewTable(table.DB(), def)
			require.NoError(t, err)
			statements, err = whole.Suggest(t.Context())
			require.NoError(t, err)
			require.Empty(t, statements)
			fs, err := whole.Verify(t.Context())
			require.NoError(t, err)
			require.Empty(t, bad(fs), fs.String())
			require.Equal(t, claim.Full, def.Mode())
		})
	}
}

func TestPartialIndexesServeTheSweepTogether(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	db := usersDB(t, file(t))
	ddl, _, _ := strings.Cut(fullSQL, "CREATE INDEX")
	execute(t, db, ddl, "CREATE INDEX waiting ON jobs (due_ms, id) WHERE state = 'new' AND shop = 7")
	require.Equal(t, []string{"due-index-missing due_ms"}, bad(verify(t, db, full())), "those in processing are looked for too")
	execute(t, db, "CREATE INDEX running ON jobs (due_ms) WHERE shop = 7 AND state = 'busy'")
	require.Empty(t, bad(verify(t, db, full())))
	other := full()
	other.Where[0].Equals = claim.Int(8)
	require.Equal(t, []string{"due-index-missing due_ms"}, bad(verify(t, db, other)))
}

func TestSuggestMendsWhatIsInTheWay(t *testing.T) {
	t.Attr("dueclaim.backend", "store:sqlite")
	db := usersDB(t, file(t))
	ddl := strings.NewReplacer("PRIMARY KEY", "", "lease    INTEGER", "lease INTEGER NOT NULL DEFAULT 0", "tries    INTEGER NOT NULL DEFAULT 0,", "").Replace(fullSQL)
	ddl, _, _ = strings.Cut(ddl, "CREATE INDEX")
	execute(t, db, ddl, "INSERT INTO jobs (id, shop, due_ms) VALUES ('a', 7, 1893456000000), ('b', 7, 0)")
	table, err := sqliteclaim.NewTable(db, full())
	require.NoError(t, err)
	statements, err := table.Suggest(t.Context())
	require.NoError(t, err)
	require.Len(t, statements, 4, "a column, a unique index, a column that may be NULL, the sweep's index")
	execute(t, db, statements...)
	statements, err = table.Suggest(t.Context())
	require.NoError(t, err)
	require.Empty(t, statements)
	require.Empty(t, bad(verify(t, db, full())))
}

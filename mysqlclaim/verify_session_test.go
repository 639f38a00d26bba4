package mysqlclaim

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
)

func TestVerifyFindsWhatIsWrongWithTheSession(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	stamp := func(d *claim.Table) {
		d.Due = claim.DueTime{Column: claim.TimeColumn{Name: "stamp", Kind: claim.Timestamp}}
	}
	inZone := func(zone *time.Location) func(*claim.Table) {
		return func(d *claim.Table) {
			d.Updated.Zone = zone
			if d.Due.Base.Name != "" {
				d.Due.Base.Zone = zone
			}
		}
	}
	cases := []struct {
		name, options string
		def           func(*claim.Table)
		want          []string
		only          string
	}{
		{name: "all in UTC", options: "parseTime=true&loc=UTC&time_zone=%27%2B00%3A00%27"},
		{name: "lax sql_mode", options: "sql_mode=%27%27", want: []string{"sql-mode "}},
		{name: "read-only transactions", options: "transaction_read_only=1", want: []string{"read-only "}, only: "store:mysql"},
		{name: "read-only transactions", options: "tx_read_only=1", want: []string{"read-only "}, only: "store:mariadb"},
		{name: "a limit of rows", options: "sql_select_limit=1"},
		{name: "a limit of rows, another clock", options: "sql_select_limit=1&loc=Europe%2FBerlin&time_zone=%27%2B01%3A00%27", def: inZone(berlin), want: []string{"session-zone created_at", "session-zone updated_at"}},
		{name: "safe updates, NULL finds the last id", options: "sql_safe_updates=1&sql_auto_is_null=1"},
		{name: "other ways of quoting", options: "sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT,STRICT_ALL_TABLES%27"},
		{name: "chains of transactions", options: "completion_type=CHAIN", want: []string{"session "}},
		{name: "reads of what isn't committed", options: "transaction_isolation=%27READ-UNCOMMITTED%27", want: []string{"session "}, only: "store:mysql"},
		{name: "reads of what isn't committed", options: "tx_isolation=%27READ-UNCOMMITTED%27", want: []string{"session "}, only: "store:mariadb"},
		{name: "serializable", options: "transaction_isolation=%27SERIALIZABLE%27", only: "store:mysql"},
		{name: "no autocommit", options: "autocommit=0", want: []string{"autocommit "}},
		{name: "session's zone isn't the column's", options: "time_zone=%27%2B08%3A00%27", want: []string{"session-zone created_at", "session-zone updated_at"}},
		{name: "both the same", options: "loc=Asia%2FShanghai&time_zone=%27%2B08%3A00%27", def: inZone(shanghai)},
		{name: "a default in UTC", options: "time_zone=%27%2B08%3A00%27", def: func(d *claim.Table) {
			d.State.Processing, d.LeaseFor, d.Updated, d.Due.Base.Name = claim.Value{}, 0, claim.TimeColumn{}, "made"
		}, want: []string{"due-index-missing "}},
		{name: "summer is not winter", options: "loc=Europe%2FBerlin&time_zone=%27%2B01%3A00%27", def: inZone(berlin), want: []string{"session-zone created_at", "session-zone updated_at"}},
		{name: "driver's loc isn't the column's", options: "parseTime=true&loc=Asia%2FShanghai", want: []string{"driver-zone created_at", "driver-zone updated_at"}},
		{name: "loc matters without parseTime too", options: "loc=Asia%2FShanghai", want: []string{"driver-zone created_at", "driver-zone updated_at"}},
		{name: "the driver writes texts itself", options: "loc=Asia%2FShanghai&interpolateParams=true", want: []string{"driver-zone created_at", "driver-zone updated_at"}},
		{name: "driver and session against the column", options: "loc=Asia%2FShanghai&time_zone=%27%2B08%3A00%27", want: []string{"driver-zone created_at", "driver-zone updated_at", "session-zone created_at", "session-zone updated_at"}},
		{name: "TIMESTAMP: session's zone isn't the driver's", options: "time_zone=%27%2B08%3A00%27", def: func(d *claim.Table) { stamp(d); d.Updated = claim.TimeColumn{Name: "changed", Kind: claim.Timestamp} }, want: []string{"driver-zone changed", "driver-zone stamp"}},
		{name: "TIMESTAMP: one zone", options: "loc=Asia%2FShanghai&time_zone=%27%2B08%3A00%27", def: func(d *claim.Table) { stamp(d); inZone(shanghai)(d) }},
	}
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders", "VARCHAR(50)", "VARBINARY(50)", "updated_at DATETIME DEFAULT NULL",
			"updated_at DATETIME NOT NULL DEFAULT '2026-01-01', stamp TIMESTAMP NOT NULL DEFAULT '2026-01-01', changed TIMESTAMP NOT NULL DEFAULT '2026-01-01', made DATETIME NOT NULL DEFAULT (UTC_TIMESTAMP()), KEY (status, created_at), KEY (status, stamp)")
		for _, c := range cases {
			if c.only != "" && c.only != b.name {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Attr("dueclaim.backend", b.name)
				def := recipeDef("orders")
				if c.def != nil {
					c.def(&def)
				}
				found := verify(t, open(t, f.dsn, c.options), def)
				assert.ElementsMatch(t, append([]string{}, c.want...), serious(found), "\n%s", found)
				for _, f := range found {
					if strings.HasSuffix(f.Code, "-zone") {
						assert.Equal(t, fault, f.Severity, "%s", f)
					}
				}
			})
		}
	})
}

// judge is what Verify says of a session alone.
func judge(settings map[string]string) claim.Findings {
	c := &catalog{session: map[string]string{"version": "8.4.0", "sql_mode": "STRICT_ALL_TABLES", "autocommit": "ON"}, missing: "unknown"}
	for name, value := range settings {
		c.session[name] = value
	}
	v := verifier{t: &Table{}, c: c}
	v.session()
	return v.Findings
}

func TestVerifyRefusesAServerThatTakesNoWrites(t *testing.T) {
	assert.Empty(t, judge(nil))
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		assert.Equal(t, []string{"read-only "}, serious(judge(map[string]string{name: "ON"})), name)
		assert.Empty(t, judge(map[string]string{name: "OFF"}), name)
	}
	assert.Equal(t, []string{"version "}, serious(judge(map[string]string{"version": "5.7.44"})))
	assert.Equal(t, []string{"version "}, serious(judge(map[string]string{"version": "10.5.1-MariaDB"})))
	assert.Equal(t, []string{"binlog-statement "}, serious(judge(map[string]string{"log_bin": "ON", "binlog_format": "STATEMENT"})))
}

func TestVerifyFindsASummerTimeOfTheSession(t *testing.T) {
	c := &catalog{
		session: map[string]string{"time_zone": "SYSTEM", "system_time_zone": "CET"},
		columns: []column{{name: "due", data: "timestamp", full: "timestamp"}, {name: "base", data: "datetime", full: "datetime"}},
		offsets: []offset{{at(0), time.Hour}, {at(0).AddDate(0, 6, 0), 2 * time.Hour}},
	}
	def := recipeDef("orders")
	def.Due = claim.DueTime{Column: claim.TimeColumn{Name: "due", Kind: claim.Timestamp}}
	v := verifier{t: &Table{def: def}, c: c}
	v.zones()
	require.Equal(t, []string{"session-zone due"}, serious(v.Findings))
	assert.Equal(t, fault, v.Findings[0].Severity, "a retry writes it")
	assert.Contains(t, v.Findings[0].Reason, "SYSTEM (CET)")

	v.Findings, v.t.def.Due = nil, claim.DueTime{Base: def.Due.Column}
	v.zones()
	require.Equal(t, []string{"session-zone due"}, serious(v.Findings))
	assert.Equal(t, warning, v.Findings[0].Severity, "it is only read")
}

func TestVerifyFindsMissingRights(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		f := newFixture(t, b)
		f.make(t, recipeTable, "orders", "VARCHAR(50)", "VARBINARY(50)", "DEFAULT NULL", "NOT NULL DEFAULT '2026-01-01', KEY (status, created_at)")
		config, err := mysql.ParseDSN(f.dsn)
		require.NoError(t, err)
		database := config.DBName
		config.User, config.Passwd = "u_"+database, "pw"
		f.exec(t, "CREATE USER "+config.User+" IDENTIFIED BY 'pw'")
		t.Cleanup(func() { f.execLate(t, "DROP USER "+config.User) })
		f.exec(t, "GRANT SELECT ON "+database+".orders TO "+config.User)
		as := func() *sql.DB { return open(t, config.FormatDSN(), "") }

		found := verify(t, as(), recipeDef("orders"))
		got, ok := find(found, "privilege", "status")
		require.True(t, ok, "\n%s", found)
		assert.Contains(t, got.Reason, "no UPDATE on status, updated_at")
		_, hidden := find(found, "trigger-unseen", "")
		assert.True(t, hidden)
		f.exec(t, "REVOKE SELECT ON "+database+".orders FROM "+config.User)
		f.exec(t, "GRANT INSERT ON "+database+".orders TO "+config.User)
		got, ok = find(verify(t, as(), recipeDef("orders")), "privilege", "")
		require.True(t, ok)
		f.exec(t, got.Mend)
		assert.Empty(t, serious(verify(t, as(), recipeDef("orders"))))
	})
}

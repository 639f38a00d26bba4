package pgclaim

import (
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// verifyFaults are tables with something wrong, one for each.
func verifyFaults() []fault {
	const broken, warning, advice = claim.Fault, claim.Warning, claim.Advice
	// with makes a table of one's own: status and times are the recipe's.
	own := func(columns string) string {
		return `CREATE TABLE {t} (` + columns + `);
CREATE INDEX ON {t} (status, created_at)`
	}
	const idText = `order_id varchar(50) PRIMARY KEY, `
	const times = `, created_at timestamp NOT NULL, updated_at timestamp`
	const status = `status text NOT NULL`
	return []fault{
		{name: "no table", ddl: "SELECT 1", want: broken, code: "table-missing", stubborn: true},
		{name: "another case", ddl: `CREATE TABLE "{t}X" ()`, want: broken, code: "table-missing", stubborn: true},
		{name: "a schema that isn't there", def: func(d *claim.Table) { d.Name = "nowhere." + d.Name }, want: broken, code: "table-missing", stubborn: true},
		{name: "a view", ddl: `CREATE VIEW {t} AS SELECT 'a'::text AS order_id`, want: broken, code: "not-a-table", stubborn: true},
		{name: "a materialized view", ddl: `CREATE MATERIALIZED VIEW {t} AS SELECT 'a'::text AS order_id`, want: broken, code: "not-a-table", stubborn: true},

		{name: "a column of the user's missing", alter: `ALTER TABLE {t} RENAME created_at TO "Created_at"`, want: broken, code: "column-missing", column: "created_at", stubborn: true},
		{name: "a column of ours missing", mode: claim.Full, alter: `ALTER TABLE {t} DROP dueclaim_token`, want: broken, code: "column-missing", column: "dueclaim_token"},
		{name: "updated missing", alter: `ALTER TABLE {t} DROP updated_at`, want: broken, code: "column-missing", column: "updated_at"},

		{name: "token too narrow", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_token TYPE integer`, want: broken, code: "column-type", column: "dueclaim_token"},
		{name: "token text", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_token TYPE text`, want: broken, code: "column-type", column: "dueclaim_token", stubborn: true},
		{name: "lease too narrow", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_lease TYPE integer`, want: broken, code: "column-type", column: "dueclaim_lease"},
		{name: "attempts numeric", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_attempts TYPE numeric`, want: broken, code: "column-type", column: "dueclaim_attempts", stubborn: true},
		{name: "timestamptz as DateTime", alter: `ALTER TABLE {t} ALTER created_at TYPE timestamptz`, want: broken, code: "column-type", column: "created_at", stubborn: true},
		{name: "timestamp as Timestamp", def: func(d *claim.Table) { d.Updated.Kind, d.Updated.Zone = claim.Timestamp, nil }, want: broken, code: "column-type", column: "updated_at", stubborn: true},
		{name: "date as DateTime", alter: `ALTER TABLE {t} ALTER updated_at TYPE date`, want: broken, code: "column-type", column: "updated_at", stubborn: true},
		{name: "text state, integer values", ddl: own(idText + status + times), def: func(d *claim.Table) {
			d.State.Pending, d.State.Processing, d.State.Done = claim.Int(0), claim.Int(1), claim.Int(2)
		}, want: broken, code: "column-type", column: "status", stubborn: true},
		{name: "smallint state, larger values", ddl: own(idText + `status smallint NOT NULL` + times), def: func(d *claim.Table) {
			d.State.Pending, d.State.Processing, d.State.Done = claim.Int(0), claim.Int(1), claim.Int(40_000)
		}, want: broken, code: "column-type", column: "status"},
		{name: "boolean state, text values", ddl: own(idText + `status boolean NOT NULL` + times), want: broken, code: "column-type", column: "status", stubborn: true},
		{name: "array state", ddl: own(idText + `status text[] NOT NULL` + times), want: broken, code: "column-type", column: "status", stubborn: true},
		{name: "integer id as text", ddl: own(`order_id bigint PRIMARY KEY, ` + status + times), want: broken, code: "column-type", column: "order_id", stubborn: true},
		{name: "text id as integer", def: func(d *claim.Table) { d.ID.Kind = claim.IntegerID }, want: broken, code: "column-type", column: "order_id", stubborn: true},
		{name: "a condition of another type", def: func(d *claim.Table) {
			d.Where = []claim.Condition{{Column: "created_at", Equals: claim.Int(1)}}
		}, want: broken, code: "column-type", column: "created_at", stubborn: true},
		{name: "payload a number", alter: `ALTER TABLE {t} ADD p numeric`, def: func(d *claim.Table) { d.Payload = "p" }, want: broken, code: "column-type", column: "p", stubborn: true},

		{name: "id not unique", ddl: own(`order_id varchar(50) NOT NULL, ` + status + times), want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id unique with another", ddl: own(`order_id varchar(50) NOT NULL, shop integer, ` + status + times + `, PRIMARY KEY (order_id, shop)`), want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id unique, but deferred", ddl: own(`order_id varchar(50) PRIMARY KEY DEFERRABLE, ` + status + times), want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id unique in part", ddl: own(`order_id varchar(50) NOT NULL, ` + status + times), alter: `CREATE UNIQUE INDEX ON {t} (order_id) WHERE status = 'pending'`, want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id unique as an expression", ddl: own(`order_id varchar(50) NOT NULL, ` + status + times), alter: `CREATE UNIQUE INDEX ON {t} (lower(order_id))`, want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id's index invalid", alter: `UPDATE pg_index SET indisvalid = false WHERE indrelid = '{t}'::regclass AND indisprimary`, want: broken, code: "id-not-unique", column: "order_id"},
		{name: "id nullable", ddl: own(`order_id varchar(50) UNIQUE, ` + status + times), want: broken, code: "id-nullable", column: "order_id"},
		{name: "id citext", ddl: own(`order_id citext PRIMARY KEY, ` + status + times), want: warning, code: "id-collation", column: "order_id"},
		{name: "id with a loose collation", ddl: own(`order_id text COLLATE loose PRIMARY KEY, ` + status + times), want: warning, code: "id-collation", column: "order_id"},
		{name: "id padded", ddl: own(`order_id char(20) PRIMARY KEY, ` + status + times), want: warning, code: "id-padded", column: "order_id"},
		{name: "uuid in too short a text", ddl: own(`order_id varchar(32) PRIMARY KEY, ` + status + times), def: func(d *claim.Table) { d.ID.Kind = claim.UUIDID }, want: broken, code: "text-too-short", column: "order_id"},

		{name: "enum lacks a value", def: func(d *claim.Table) { d.State.Dead = claim.Text(`it's \dead`) }, want: broken, code: "enum-lacks-value", column: "status"},
		{name: "a domain over an enum", ddl: "CREATE TYPE {t}_e AS ENUM ('pending', 'processing', 'cancelled'); CREATE DOMAIN {t}_d AS {t}_e; " + own(idText+`status {t}_d NOT NULL`+times), want: broken, code: "column-type", column: "status"},
		{name: "check lacks a value", ddl: own(idText + status + ` CHECK (status IN ('pending', 'it''s'))` + times), want: broken, code: "check-lacks-value", column: "status"},
		{name: "check of a varchar lacks a value", ddl: own(idText + `status varchar(20) NOT NULL CHECK (status IN ('pending', 'cancelled'))` + times), want: broken, code: "check-lacks-value", column: "status"},
		{name: "check of an integer lacks a value", ddl: own(idText + `status smallint NOT NULL CHECK (status IN (-1, 0))` + times), def: func(d *claim.Table) {
			d.State.Pending, d.State.Processing, d.State.Done = claim.Int(-1), claim.Int(0), claim.Int(-2)
		}, want: broken, code: "check-lacks-value", column: "status"},
		{name: "check of a domain lacks a value", ddl: "CREATE DOMAIN {t}_d AS text CHECK (VALUE IN ('pending', 'cancelled')); " + own(idText+`status {t}_d NOT NULL`+times), want: broken, code: "check-lacks-value", column: "status", stubborn: true},

		{name: "holder too short", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_holder TYPE varchar(63)`, want: broken, code: "text-too-short", column: "dueclaim_holder"},
		{name: "error too short", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_error TYPE varchar(255)`, want: warning, code: "text-too-short", column: "dueclaim_error"},
		{name: "state too short", ddl: own(idText + `status varchar(9) NOT NULL` + times), want: broken, code: "text-too-short", column: "status"},
		{name: "state with a loose collation", ddl: own(idText + `status text COLLATE loose NOT NULL` + times), want: warning, code: "state-collation", column: "status"},
		{name: "more digits than the column keeps", ddl: own(idText + status + `, created_at timestamp NOT NULL, updated_at timestamp(3)`), want: broken, code: "time-digits", column: "updated_at"},
		{name: "updated generated", ddl: own(idText + status + `, created_at timestamp NOT NULL, updated_at timestamp GENERATED ALWAYS AS (created_at) STORED`), want: broken, code: "generated", column: "updated_at", stubborn: true},
		{name: "token identity", mode: claim.Full, alter: "ALTER TABLE {t} ALTER dueclaim_token DROP DEFAULT; ALTER TABLE {t} ALTER dueclaim_token ADD GENERATED ALWAYS AS IDENTITY", want: broken, code: "generated", column: "dueclaim_token", stubborn: true},
		{name: "lease never null", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_lease SET NOT NULL`, want: broken, code: "lease-not-null", column: "dueclaim_lease"},

		{name: "a read-only session", session: map[string]string{"default_transaction_read_only": "on"}, want: broken, code: "read-only", stubborn: true},
		{name: "no right to write", alter: "CREATE ROLE {r}; GRANT SELECT ON {t} TO {r}", session: map[string]string{"role": "{r}"}, want: broken, code: "privilege", column: "status", stubborn: true},
		{name: "no right to read", alter: "CREATE ROLE {r}; GRANT UPDATE ON {t} TO {r}", session: map[string]string{"role": "{r}"}, want: broken, code: "privilege", column: "order_id", stubborn: true},
		{name: "no right to the schema", alter: "CREATE ROLE {r}; CREATE SCHEMA {t}_s", session: map[string]string{"role": "{r}"}, def: func(d *claim.Table) { d.Name = d.Name + "_s." + d.Name }, want: broken, code: "privilege", stubborn: true},

		{name: "state nullable", ddl: own(idText + `status text` + times), want: warning, code: "nullable", column: "status"},
		{name: "base nullable", alter: `ALTER TABLE {t} ALTER created_at DROP NOT NULL`, want: warning, code: "nullable", column: "created_at"},
		{name: "updated nullable", want: warning, code: "nullable", column: "updated_at"},
		{name: "holder without a default", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_holder DROP DEFAULT`, want: warning, code: "not-null-without-default", column: "dueclaim_holder"},
		{name: "attempts without a default", mode: claim.Full, alter: `ALTER TABLE {t} ALTER dueclaim_attempts DROP DEFAULT`, want: warning, code: "not-null-without-default", column: "dueclaim_attempts"},
		{name: "no index for the sweep", ddl: `CREATE TABLE {t} (` + idText + status + times + `)`, want: warning, code: "due-index-missing", column: "created_at"},
		{name: "the sweep's index invalid", alter: `UPDATE pg_index SET indisvalid = false WHERE indrelid = '{t}'::regclass AND NOT indisprimary`, want: warning, code: "due-index-missing", column: "created_at"},
		{name: "an index of pending rows only", ddl: `CREATE TABLE {t} (` + idText + status + times + "); CREATE INDEX ON {t} (created_at) WHERE status = 'pending'", want: warning, code: "due-index-missing", column: "created_at"},
		{name: "no index of rows that aren't deleted", ddl: `CREATE TABLE {t} (` + idText + status + times + `, deleted_at timestamptz); CREATE INDEX ON {t} (deleted_at, status, created_at)`, def: func(d *claim.Table) { d.Where = []claim.Condition{{Column: "deleted_at", IsNull: true}} }, want: warning, code: "due-index-missing", column: "created_at"},
		{name: "partitioned, no index", ddl: `CREATE TABLE {t} (` + idText + status + times + ") PARTITION BY HASH (order_id)", want: warning, code: "due-index-missing", column: "created_at"},
		{name: "a trigger that sets the fence", alter: `CREATE FUNCTION {t}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at = localtimestamp; RETURN NEW; END'; CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {t}_f()`, want: broken, code: "trigger", column: "updated_at", stubborn: true},
		{name: "a trigger that updates the row again", alter: `CREATE FUNCTION {t}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE {t} SET updated_at = localtimestamp WHERE order_id = NEW.order_id; RETURN NULL; END'; CREATE TRIGGER touch AFTER UPDATE ON {t} FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION {t}_f()`, want: broken, code: "trigger", column: "updated_at", stubborn: true},
		{name: "a trigger that is told the fence", alter: `CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION leave('updated_at')`, want: broken, code: "trigger", column: "updated_at", stubborn: true},
		{name: "a polite trigger", alter: `CREATE FUNCTION {t}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at THEN NEW.updated_at = localtimestamp; END IF; RETURN NEW; END'; CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {t}_f()`, want: warning, code: "trigger", stubborn: true},
		{name: "a trigger that sets a token", mode: claim.Full, alter: `CREATE FUNCTION {t}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.dueclaim_token := 7; RETURN NEW; END'; CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {t}_f()`, want: broken, code: "trigger", column: "dueclaim_token", stubborn: true},
		{name: "a trigger of a Transition", mode: claim.Transition, alter: `CREATE FUNCTION {t}_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at = localtimestamp; RETURN NEW; END'; CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {t}_f()`, want: advice, code: "trigger", stubborn: true},
		{name: "a trigger", alter: `CREATE TRIGGER touch BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION leave()`, want: warning, code: "trigger", stubborn: true},
		{name: "a trigger of a column", alter: `CREATE TRIGGER touch AFTER UPDATE OF status ON {t} FOR EACH ROW EXECUTE FUNCTION leave()`, want: warning, code: "trigger", stubborn: true},
		{name: "a rule", alter: `CREATE RULE nothing AS ON UPDATE TO {t} DO INSTEAD NOTHING`, want: warning, code: "trigger", stubborn: true},
		{name: "now() by another clock", alter: `ALTER TABLE {t} ALTER created_at SET DEFAULT now()`, session: map[string]string{"timezone": "Europe/Berlin"}, want: broken, code: "session-zone", column: "created_at"},
		{name: "another clock", session: map[string]string{"timezone": "Asia/Shanghai"}, want: broken, code: "session-zone", column: "updated_at", stubborn: true},
		{name: "a zone that isn't the session's", def: func(d *claim.Table) { d.Updated.Zone = time.FixedZone("Nepal", 20_700) }, want: broken, code: "session-zone", column: "updated_at", stubborn: true},
		{name: "a zone that isn't the driver's", def: func(d *claim.Table) { d.Updated.Zone = time.FixedZone("Nepal", 20_700) }, want: broken, code: "driver-zone", column: "updated_at", stubborn: true},
		{name: "a time that is never read", mode: claim.Full, def: func(d *claim.Table) {
			d.Updated = claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.FixedZone("Nepal", 20_700)}
		}, want: warning, code: "session-zone", column: "updated_at", stubborn: true},
		{name: "summer time", def: func(d *claim.Table) { d.Due.Base.Zone = berlinZone() }, want: advice, code: "summer-time", column: "created_at", stubborn: true},
		{name: "row security", alter: "CREATE ROLE {r}; GRANT ALL ON {t} TO {r}; ALTER TABLE {t} ENABLE ROW LEVEL SECURITY", session: map[string]string{"role": "{r}"}, want: warning, code: "row-security", stubborn: true},
		{name: "partitioned by state", ddl: "CREATE TABLE {t} (order_id varchar(50), " + status + times + ", PRIMARY KEY (order_id, status)) PARTITION BY LIST (status)", want: warning, code: "partition-by-state", column: "status", stubborn: true},
		{name: "partitioned without a key of the id", ddl: "CREATE TABLE {t} (order_id varchar(50), " + status + times + ", PRIMARY KEY (order_id, created_at)) PARTITION BY RANGE (created_at)", want: warning, code: "id-not-unique", column: "order_id", stubborn: true},
		{name: "partitioned by state, ids", ddl: "CREATE TABLE {t} (order_id varchar(50), " + status + times + ", PRIMARY KEY (order_id, status)) PARTITION BY LIST (status)", want: warning, code: "id-not-unique", column: "order_id", stubborn: true},
		{name: "partitioned, found by scans", ddl: "CREATE TABLE {t} (order_id varchar(50) NOT NULL, " + status + times + ", PRIMARY KEY (status, order_id)) PARTITION BY LIST (status)", want: broken, code: "id-not-unique", column: "order_id", stubborn: true},
		{name: "partitioned, unique with a third", ddl: "CREATE TABLE {t} (order_id varchar(50) NOT NULL, shop integer, " + status + times + ", PRIMARY KEY (order_id, shop, status)) PARTITION BY LIST (status)", want: broken, code: "id-not-unique", column: "order_id", stubborn: true},
		{name: "unlogged", alter: "ALTER TABLE {t} SET UNLOGGED", want: warning, code: "unlogged"},
		{name: "inherited", alter: "CREATE TABLE {t}_x () INHERITS ({t})", want: warning, code: "inherited", stubborn: true},
		{name: "asynchronous commits", session: map[string]string{"synchronous_commit": "off"}, want: warning, code: "commit-asynchronous", stubborn: true},

		{name: "a stricter isolation", session: map[string]string{"default_transaction_isolation": "serializable"}, want: advice, code: "isolation", stubborn: true},
		{name: "base without fraction", ddl: own(idText + status + `, created_at timestamp(0) NOT NULL, updated_at timestamp`), def: func(d *claim.Table) { d.Due.Base.Digits = 0 }, want: advice, code: "time-without-fraction", column: "created_at", stubborn: true},
		{name: "base in seconds", ddl: own(idText + status + `, created_at integer NOT NULL, updated_at timestamp`), def: func(d *claim.Table) { d.Due.Base = claim.TimeColumn{Name: "created_at", Kind: claim.UnixSecond} }, want: advice, code: "time-without-fraction", column: "created_at", stubborn: true},
		{name: "fence in seconds", def: func(d *claim.Table) { d.Updated.Digits = 0 }, want: advice, code: "time-without-fraction", column: "updated_at", stubborn: true},
		{name: "updated indexed", alter: "CREATE INDEX ON {t} (order_id) INCLUDE (updated_at)", want: advice, code: "lease-indexed", column: "updated_at", stubborn: true},
		{name: "full pages", want: advice, code: "fillfactor"},
	}
}

func berlinZone() *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return zone
}

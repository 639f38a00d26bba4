package unknowns

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
)

// place is a store behind a proxy, on a database of its own.
type place struct {
	proxy  *wireproxy.Proxy
	db     *sql.DB // through the proxy, as the store's; nil with a pgx pool
	direct *sql.DB // around it
	dsn    string  // through it, of MySQL
	store  func(t *testing.T, queue string) core.Store
	// refusals are errors that this kind of server has for an outcome that the
	// client can't know.
	refusals []wireproxy.Fault
	first    map[core.ID]int64 // tokens of rows when they were first seen
}

// configuration is one driver with its settings, on one kind of server.
type configuration struct {
	name    string
	backend string
	open    func(t *testing.T) *place
	// readsBack: a claim is an UPDATE and a SELECT.
	readsBack bool
}

var configurations = []configuration{
	{"mariadb, defaults", "store:mariadb", onMySQL(testserver.MariaDB, ""), true},
	{"mariadb, interpolateParams", "store:mariadb", onMySQL(testserver.MariaDB, "?interpolateParams=true"), true},
	{"mysql, clientFoundRows", "store:mysql", onMySQL(testserver.MySQL, "?clientFoundRows=true"), true},
	{"pgx pool", "store:postgres (pgx)", onPool, false},
	{"pgx on database/sql", "store:postgres (database/sql)", onStdlib(pgx.QueryExecModeCacheStatement), false},
	{"pgx on database/sql, simple protocol", "store:postgres (database/sql)", onStdlib(pgx.QueryExecModeSimpleProtocol), false},
}

func onMySQL(database func(testing.TB) string, options string) func(*testing.T) *place {
	return func(t *testing.T) *place {
		dsn := database(t)
		config, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		p := &place{proxy: wireproxy.New(t, wireproxy.MySQL, config.Addr), direct: openMySQL(t, dsn)}
		config.Addr = p.proxy.Addr()
		p.dsn = config.FormatDSN() + options
		p.db = openMySQL(t, p.dsn)
		p.dropping(t)
		for _, code := range []string{"1213", "9007"} {
			p.refusals = append(p.refusals, wireproxy.Fault{Cut: wireproxy.ErrorReply, Code: code, Text: "Write conflict, try again"})
		}
		p.store = func(t *testing.T, queue string) core.Store { return newMySQL(t, p.db, queue) }
		made, err := mysqlclaim.New(p.direct, mysqlclaim.Options{})
		require.NoError(t, err)
		require.NoError(t, made.Migrate(t.Context()))
		return p
	}
}

func newMySQL(t *testing.T, db *sql.DB, queue string) *mysqlclaim.Store {
	s, err := mysqlclaim.New(db, mysqlclaim.Options{Queue: queue})
	require.NoError(t, err)
	return s
}

func openMySQL(t *testing.T, dsn string) *sql.DB {
	config, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	config.Logger = &mysql.NopLogger{} // it tells of each cut
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	return closing(t, sql.OpenDB(connector))
}

func closing(t *testing.T, db *sql.DB) *sql.DB {
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// onPostgres returns a place without a store, and the URL through its proxy.
func onPostgres(t *testing.T) (*place, string) {
	u, err := url.Parse(testserver.Postgres(t))
	require.NoError(t, err)
	direct, err := sql.Open("pgx", u.String())
	require.NoError(t, err)
	p := &place{proxy: wireproxy.New(t, wireproxy.Postgres, u.Host), direct: closing(t, direct)}
	for _, code := range []string{"40001", "57P01"} {
		p.refusals = append(p.refusals, wireproxy.Fault{Cut: wireproxy.ErrorReply, Code: code, Text: "on purpose"})
	}
	made, err := pgclaim.NewSQL(direct, pgclaim.Options{})
	require.NoError(t, err)
	require.NoError(t, made.Migrate(t.Context()))
	u.Host = p.proxy.Addr()
	return p, u.String()
}

func onPool(t *testing.T) *place {
	p, through := onPostgres(t)
	config, err := pgxpool.ParseConfig(through)
	require.NoError(t, err)
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	p.dropping(t)
	p.store = func(t *testing.T, queue string) core.Store {
		s, err := pgclaim.New(pool, pgclaim.Options{Queue: queue})
		require.NoError(t, err)
		return s
	}
	return p
}

func onStdlib(mode pgx.QueryExecMode) func(*testing.T) *place {
	return func(t *testing.T) *place {
		p, through := onPostgres(t)
		config, err := pgx.ParseConfig(through)
		require.NoError(t, err)
		config.DefaultQueryExecMode = mode
		p.db = closing(t, stdlib.OpenDB(*config))
		p.dropping(t)
		p.store = func(t *testing.T, queue string) core.Store {
			s, err := pgclaim.NewSQL(p.db, pgclaim.Options{Queue: queue})
			require.NoError(t, err)
			return s
		}
		return p
	}
}

// dropping ends what stalls before its pool is closed: pgx waits 15 s for the end of
// a connection that it gave up.
func (p *place) dropping(t *testing.T) { t.Cleanup(func() { p.proxy.DropAll() }) }

// counting has the server count the changes of each row from now on.
func (p *place) counting(t *testing.T) {
	statements := []string{"CREATE TABLE changes (id VARCHAR(255))"}
	if len(p.refusals) > 0 && p.refusals[0].Code == "1213" {
		// A row that an UPDATE finds and leaves as it is (that of ON DUPLICATE KEY among
		// them) has a trigger run too.
		statements = append(statements,
			"CREATE TRIGGER count_inserts AFTER INSERT ON dueclaim_tasks FOR EACH ROW INSERT INTO changes VALUES (NEW.id)",
			`CREATE TRIGGER count_updates AFTER UPDATE ON dueclaim_tasks FOR EACH ROW INSERT INTO changes SELECT NEW.id FROM DUAL WHERE NOT (
				NEW.status <=> OLD.status AND NEW.token <=> OLD.token AND NEW.holder <=> OLD.holder AND NEW.lease_until <=> OLD.lease_until AND
				NEW.attempts <=> OLD.attempts AND NEW.crashes <=> OLD.crashes AND NEW.due <=> OLD.due AND NEW.planned <=> OLD.planned AND
				NEW.call_id <=> OLD.call_id AND NEW.finished_at <=> OLD.finished_at AND NEW.last_error <=> OLD.last_error)`)
	} else {
		statements = append(statements, `CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN INSERT INTO changes VALUES (NEW.id); RETURN NULL; END $$`,
			"CREATE TRIGGER count_changes AFTER INSERT OR UPDATE ON dueclaim_tasks FOR EACH ROW EXECUTE FUNCTION count_change()")
	}
	for _, s := range statements {
		_, err := p.direct.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// changes is how often the row was inserted or updated, as far as that was
// committed.
func (p *place) changes(t *testing.T, id core.ID) (n int) {
	err := p.direct.QueryRowContext(t.Context(), fmt.Sprintf("SELECT COUNT(*) FROM changes WHERE id = '%s'", id)).Scan(&n)
	require.NoError(t, err)
	return n
}

// row is what the database says of a task.
type row struct {
	Rows, Changes     int
	Status, Holder    string
	Token             int64 // less the first one of the row that was seen
	Attempts, Crashes int
	Due, Lease        int64 // milliseconds; Due 0: none
}

func (p *place) row(t *testing.T, id core.ID) row {
	r := row{Changes: p.changes(t, id)}
	rows, err := p.direct.QueryContext(t.Context(), fmt.Sprintf(
		"SELECT status, holder, token, attempts, crashes, COALESCE(due, 0), lease_until FROM dueclaim_tasks WHERE id = '%s'", id))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		r.Rows++
		require.NoError(t, rows.Scan(&r.Status, &r.Holder, &r.Token, &r.Attempts, &r.Crashes, &r.Due, &r.Lease))
	}
	require.NoError(t, rows.Err())
	if p.first == nil {
		p.first = map[core.ID]int64{}
	}
	if _, seen := p.first[id]; !seen && r.Rows > 0 {
		p.first[id] = r.Token
	}
	r.Token -= p.first[id]
	r.Holder = strings.TrimRight(r.Holder, " ") // a new row on MySQL has room for one
	return r
}

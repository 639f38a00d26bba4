package pgclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dueclaim/dueclaim/claim"
)

// schemaVersion is what this package creates; the table's comment keeps it.
const schemaVersion = 1

// minServer is the oldest server version, as server_version_num shows it.
const minServer = 130000

// longestSuffix is the longest of what follows the table's name in the names of
// its indexes and its view.
const longestSuffix = "_finished"

// schemaSQL creates version 1. due, finished_at and the key are the only indexed
// columns, and the partial indexes name no other one: a claim and an extension
// write none of them and stay HOT where the page has room. A claim of many takes
// neighbours, each of which gets a second version beside it before the first can be
// cleared away, so half of a page is left free: at 70 percent a claim costs the
// server twice as much. The key starts with id so that it is no candidate for
// Waiting, which goes by queue and due.
// Vacuum comes early and doesn't pause, since each transition leaves a dead row
// version.
var schemaSQL = []string{`
CREATE TABLE IF NOT EXISTS {table} (
  queue        text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL,
  status       text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'running', 'done', 'dead', 'cancelled')),
  due          bigint,
  planned      bigint NOT NULL,
  token        bigint NOT NULL,
  holder       text COLLATE "C" NOT NULL DEFAULT '',
  lease_until  bigint NOT NULL DEFAULT 0,
  attempts     integer NOT NULL DEFAULT 0,
  crashes      integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 0,
  kind         text COLLATE "C" NOT NULL DEFAULT '',
  payload      bytea NOT NULL DEFAULT '',
  meta         bytea NOT NULL DEFAULT '',
  last_error   text NOT NULL DEFAULT '',
  call_id      text COLLATE "C" NOT NULL DEFAULT '',
  created_at   bigint NOT NULL,
  finished_at  bigint,
  PRIMARY KEY (id, queue)
) WITH (fillfactor = 50,
        autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`, `
CREATE INDEX IF NOT EXISTS {due} ON {table} (queue, due, id) WHERE due IS NOT NULL`, `
CREATE INDEX IF NOT EXISTS {finished} ON {table} (queue, finished_at) WHERE finished_at IS NOT NULL`, `
CREATE OR REPLACE VIEW {view} AS
SELECT queue, id, status, to_timestamp(due / 1000.0) AS due, to_timestamp(planned / 1000.0) AS planned,
       CASE WHEN lease_until > 0 THEN to_timestamp(lease_until / 1000.0) END AS lease_until,
       holder, token, attempts, crashes, max_attempts, kind, length(payload) AS payload_bytes, last_error,
       to_timestamp(created_at / 1000.0) AS created_at, to_timestamp(finished_at / 1000.0) AS finished_at
  FROM {table}`, `
COMMENT ON TABLE {table} IS '{comment}'`,
}

// commentPrefix stands before the version in the table's comment.
const commentPrefix = "dueclaim schema "

// inspectSQL answers with one row whatever there is.
const inspectSQL = `
SELECT current_setting('server_encoding')::text, current_setting('server_version_num')::integer,
       coalesce(obj_description(to_regclass($1::text)::oid, 'pg_class'), '')::text,
       coalesce((SELECT c.relkind <> 'r' OR c.relhassubclass FROM pg_class AS c WHERE c.oid = to_regclass($1::text)), false)`

// Migrate creates the table, its indexes and the view "<table>_view", which shows
// times as times, or brings them up to date. It may be repeated and run by many
// processes at once: an advisory lock that ends with the transaction makes them
// take turns. Where nothing is to do, it takes no lock and needs no right but to
// read; a table that a newer release made is left as it is. Where something is, it waits
// for other transactions that use the table or the view for three seconds at most, since
// all others would have to queue behind it, and then fails and has changed nothing. A
// schema in the table's name must exist.
//
// It fails when the database's encoding is not UTF8, the server is older than
// Postgres 13, or the table is partitioned or inherited from.
func (s *Store) Migrate(ctx context.Context) error {
	r, err := s.runner(ctx)
	if err != nil {
		return s.fail("migrate", err)
	}
	current, err := s.inspect(ctx, r)
	if err == nil && !current {
		err = s.inTx(ctx, s.create)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == codeLockTimeout {
		err = fmt.Errorf("another transaction has used %s or its view and is still open; end it (pg_stat_activity shows it, often as \"idle in transaction\") and call Migrate again: %w", s.table, err)
	}
	return s.fail("migrate", err)
}

// inspect tells whether the table is there and not older than this package.
func (s *Store) inspect(ctx context.Context, r runner) (current bool, err error) {
	var encoding, comment string
	var server int
	var parts bool
	err = r.run(ctx, inspectSQL, []any{s.quoted()}, func(scan scanner) error { return scan(&encoding, &server, &comment, &parts) })
	switch {
	case err != nil:
		return false, err
	case parts:
		return false, partedError(s.table)
	case server < minServer:
		return false, fmt.Errorf("the server is Postgres %d.%d; want 13 or newer", server/10000, server%10000)
	case encoding != "UTF8":
		return false, fmt.Errorf("the database's encoding is %s; want UTF8, in which every id can be stored (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)", encoding)
	}
	var version int
	if _, err := fmt.Sscanf(comment, commentPrefix+"%d", &version); err != nil {
		return false, nil // no table, or not with our comment
	}
	return version >= schemaVersion, nil
}

// partedError names a table that isn't a plain one.
type partedError string

func (e partedError) Error() string {
	return string(e) + " is partitioned, has tables that inherit from it, or is no table; want a plain one, in which a row has one place (ctid) of its own"
}

func (s *Store) create(ctx context.Context, r runner) error {
	ignore := func(scanner) error { return nil }
	if err := r.run(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, []any{"dueclaim migrate " + s.table}, ignore); err != nil {
		return err
	}
	if current, err := s.inspect(ctx, r); err != nil || current {
		return err
	}
	if err := r.run(ctx, `SET LOCAL lock_timeout = '3s'`, nil, ignore); err != nil {
		return err
	}
	fill := strings.NewReplacer("{table}", s.quoted(), "{view}", claim.QuoteTable(s.table+"_view", '"'),
		"{due}", s.indexName("_due"), "{finished}", s.indexName(longestSuffix),
		"{comment}", fmt.Sprintf("%s%d", commentPrefix, schemaVersion))
	for _, statement := range schemaSQL {
		if err := r.run(ctx, fill.Replace(statement), nil, ignore); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) quoted() string { return claim.QuoteTable(s.table, '"') }

// indexName leaves the schema out: an index is made in its table's.
func (s *Store) indexName(suffix string) string {
	return claim.QuoteTable(s.table[strings.LastIndexByte(s.table, '.')+1:]+suffix, '"')
}

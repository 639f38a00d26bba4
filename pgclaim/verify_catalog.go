package pgclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// catalogSQL reads the session and all that there is to know about a table in
// one statement, as one JSON text, which looks the same in every query exec mode.
// The table's quoted name is its argument, looked up by the search_path; where
// there is none, "table" is null.
//
// A domain is followed to its base type: chain has a row for each step, base the
// last one of each column.
const catalogSQL = `
WITH RECURSIVE rel AS (
  SELECT c.* FROM pg_catalog.pg_class AS c WHERE c.oid = to_regclass($1::text)
), att AS (
  SELECT a.* FROM pg_catalog.pg_attribute AS a JOIN rel ON rel.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped
), chain AS (
  SELECT attnum, atttypid AS typ, atttypmod AS mod, attnotnull AS never_null, '{}'::oid[] AS domains FROM att
   UNION ALL
  SELECT k.attnum, t.typbasetype, CASE WHEN k.mod < 0 THEN t.typtypmod ELSE k.mod END, k.never_null OR t.typnotnull, k.domains || t.oid
    FROM chain AS k JOIN pg_catalog.pg_type AS t ON t.oid = k.typ WHERE t.typtype = 'd'
), base AS (
  SELECT DISTINCT ON (attnum) * FROM chain ORDER BY attnum, cardinality(domains) DESC
), checks AS (
  SELECT n.conname, n.oid, n.conkey[1] AS attnum, '' AS domain FROM pg_catalog.pg_constraint AS n JOIN rel ON n.conrelid = rel.oid
   WHERE n.contype = 'c' AND cardinality(n.conkey) = 1
   UNION ALL
  SELECT n.conname, n.oid, b.attnum, format_type(n.contypid, -1) FROM base AS b JOIN pg_catalog.pg_constraint AS n ON n.contypid = ANY (b.domains)
   WHERE n.contype = 'c'
)
SELECT json_build_object(
  'server', current_setting('server_version_num')::integer,
  'encoding', pg_encoding_to_char((SELECT encoding FROM pg_catalog.pg_database WHERE datname = current_database())),
  'role', quote_ident(current_user),
  'standby', pg_is_in_recovery(),
  'read_only', current_setting('transaction_read_only') = 'on',
  'commit', current_setting('synchronous_commit'),
  'isolation', current_setting('default_transaction_isolation'),
  'zone', current_setting('TimeZone'),
  'offsets', (SELECT json_agg(json_build_object('at', floor(extract(epoch FROM g))::bigint, 'seconds', extract(timezone FROM g)::integer))
                FROM generate_series(now(), now() + interval '11 months', interval '1 month') AS g),
  'table', (SELECT json_build_object(
    'kind', rel.relkind::text, 'persistence', rel.relpersistence::text,
    'row_security', rel.relrowsecurity, 'subject', row_security_active(rel.oid),
    'children', rel.relkind = 'r' AND EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhparent = rel.oid),
    'fillfactor', (SELECT o.option_value::integer FROM pg_options_to_table(rel.reloptions) AS o WHERE o.option_name = 'fillfactor'),
    'partition_key', (SELECT p.partattrs::int2[] FROM pg_catalog.pg_partitioned_table AS p WHERE p.partrelid = rel.oid),
    'columns', (SELECT json_agg(json_build_object(
        'num', a.attnum, 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
        'base', CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.typname = 'citext' THEN t.typname ELSE '' END,
        'base_type', format_type(t.oid, NULL), 'modifier', b.mod,
        'labels', (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = t.oid),
        'not_null', b.never_null, 'identity', a.attidentity = 'a', 'generated', a.attgenerated <> '',
        'default', CASE WHEN a.attidentity <> '' THEN 'identity' ELSE pg_get_expr(d.adbin, d.adrelid) END,
        'domain_default', b.domains <> '{}' AND EXISTS (SELECT 1 FROM pg_catalog.pg_type AS o WHERE o.oid = ANY (b.domains) AND o.typdefault IS NOT NULL),
        'exact', coalesce(l.collisdeterministic, true) AND t.typname <> 'citext', 'collation', coalesce(l.collname, ''),
        'select', has_column_privilege(a.attrelid, a.attnum, 'SELECT'), 'update', has_column_privilege(a.attrelid, a.attnum, 'UPDATE')
      ) ORDER BY a.attnum)
      FROM att AS a JOIN base AS b USING (attnum) JOIN pg_catalog.pg_type AS t ON t.oid = b.typ
      LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation),
    'indexes', (SELECT json_agg(json_build_object(
        'name', i.indexrelid::regclass::text, 'method', m.amname, 'keys', (i.indkey::int2[])[0:i.indnkeyatts - 1], 'all', i.indkey::int2[],
        'unique', i.indisunique AND i.indimmediate, 'valid', i.indisvalid AND i.indisready,
        'predicate', coalesce(pg_get_expr(i.indpred, i.indrelid), '')
      ) ORDER BY i.indexrelid)
      FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
     WHERE i.indrelid = rel.oid),
    'triggers', (SELECT json_agg(json_build_object('name', g.tgname, 'columns', g.tgattr::int2[], 'before', g.tgtype & 2 <> 0,
        'arguments', encode(g.tgargs, 'escape'), 'source', pg_get_triggerdef(g.oid) || E'\n' || f.prosrc) ORDER BY g.tgname)
      FROM pg_catalog.pg_trigger AS g JOIN pg_catalog.pg_proc AS f ON f.oid = g.tgfoid
     WHERE g.tgrelid = rel.oid AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype & 16 <> 0),
    'rules', (SELECT json_agg(r.rulename ORDER BY r.rulename) FROM pg_catalog.pg_rewrite AS r
     WHERE r.ev_class = rel.oid AND r.ev_type = '2' AND r.ev_enabled IN ('O', 'A')),
    'checks', (SELECT json_agg(json_build_object('name', k.conname, 'column', k.attnum, 'domain', k.domain, 'definition', pg_get_constraintdef(k.oid)) ORDER BY k.conname)
      FROM checks AS k)
  ) FROM rel))::text`

// catalog is what catalogSQL reads.
type catalog struct {
	Server            int
	Encoding          string
	Role              string // quoted where needed
	Standby           bool
	ReadOnly          bool `json:"read_only"`
	Commit, Isolation string
	Zone              string
	Offsets           []zoneOffset // the session's zone over a year
	Written           []zoneOffset `json:"-"` // the clock by which the driver writes a time.Time of time.Local
	Table             *relation
}

// zoneOffset is how far a zone's clock is before UTC at an instant.
type zoneOffset struct{ At, Seconds int64 }

type relation struct {
	Kind, Persistence string
	RowSecurity       bool `json:"row_security"`
	Subject           bool // to row security, as this role
	Children          bool
	Fillfactor        *int
	PartitionKey      []int `json:"partition_key"`
	Columns           []attribute
	Indexes           []index
	Triggers          []trigger
	Rules             []string
	Checks            []check
}

// attribute is a column of the table. Base is the name of the built-in type that is
// below all domains, "citext", "enum", or empty for another; Modifier is that
// type's.
type attribute struct {
	Num           int
	Name, Type    string
	Base          string
	BaseType      string `json:"base_type"`
	Modifier      int
	Labels        []string
	NotNull       bool `json:"not_null"`
	Identity      bool // GENERATED ALWAYS AS IDENTITY
	Generated     bool
	Default       *string
	DomainDefault bool `json:"domain_default"`
	Exact         bool // equal are equal bytes only
	Collation     string
	Select        bool
	Update        bool
}

// index is an index of the table; a key of 0 is an expression. All has the
// INCLUDE columns too.
type index struct {
	Name, Method  string
	Keys, All     []int
	Unique, Valid bool
	Predicate     string
}

type trigger struct {
	Name      string
	Columns   []int // of UPDATE OF; empty: any
	Before    bool
	Arguments string // as pg_trigger has them
	Source    string // its definition and its function's body
}

// check is a CHECK constraint on one column, or on a domain that it is of.
type check struct {
	Name       string
	Column     int
	Domain     string
	Definition string
}

func (t *Table) catalog(ctx context.Context) (catalog, error) {
	var c catalog
	r, err := t.runner(ctx)
	if err != nil {
		return c, err
	}
	err = r.run(ctx, catalogSQL, []any{t.name}, func(scan scanner) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &c)
	})
	if err == nil {
		c.Written, err = t.written(ctx, c.Offsets, time.Local)
	}
	if err != nil {
		return c, fmt.Errorf("read the catalog: %w", err)
	}
	return c, nil
}

// written passes times of a zone to the driver as the user's statements do, for a
// column of type timestamp, and returns which clock's it wrote: pgx writes what the
// time.Time's own zone shows, in some of its modes what the session's does.
func (h *handle) written(ctx context.Context, at []zoneOffset, zone *time.Location) ([]zoneOffset, error) {
	var texts []string
	var args []any
	for i, o := range at {
		texts, args = append(texts, fmt.Sprintf("$%d::timestamp", i+1)), append(args, time.Unix(o.At, 0).In(zone))
	}
	var all []zoneOffset
	err := h.onConn(ctx, func(r runner) error {
		all = nil
		if s, ok := r.(sqlRunner); ok && slices.Contains(s.mode, any(pgx.QueryExecModeExec)) {
			s.mode = nil // it writes times otherwise than the user's statements do
			r = s
		}
		return r.run(ctx, "SELECT extract(epoch FROM w.x)::bigint FROM unnest(ARRAY["+strings.Join(texts, ", ")+"]) WITH ORDINALITY AS w(x, n) ORDER BY w.n", args, func(scan scanner) error {
			var shown int64
			err := scan(&shown)
			if i := len(all); err == nil && i < len(at) {
				all = append(all, zoneOffset{at[i].At, shown - at[i].At})
			}
			return err
		})
	})
	return all, err
}

func (r *relation) column(name string) (attribute, bool) {
	i := slices.IndexFunc(r.Columns, func(c attribute) bool { return c.Name == name })
	if i < 0 {
		return attribute{}, false
	}
	return r.Columns[i], true
}

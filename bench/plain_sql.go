package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// rawHolder is who claims in the plain statements.
const rawHolder = "bench-0123456789abcdef0123456789"

func rawIDs(first, end int) []string {
	ids := make([]string, end-first)
	for i := range ids {
		ids[i] = string(taskID(first + i))
	}
	return ids
}

// plainPostgres has a table like the managed one, in its plainest form.
type plainPostgres struct{ pool *pgxpool.Pool }

func (p plainPostgres) create(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, `CREATE TABLE raw_tasks (id text COLLATE "C" PRIMARY KEY, due bigint, state smallint NOT NULL DEFAULT 0, holder text,
		lease bigint NOT NULL DEFAULT 0, token bigint NOT NULL DEFAULT 0, attempt integer NOT NULL DEFAULT 0, payload bytea NOT NULL) WITH (fillfactor = 70);
		CREATE INDEX raw_due ON raw_tasks (due)`)
	return err
}

func (p plainPostgres) insert(ctx context.Context, first, end int) error {
	dues, payloads := make([]int64, end-first), make([][]byte, end-first)
	for i := range dues {
		dues[i] = time.Now().UnixMilli()
		payloads[i] = newTask(first+i, time.Time{}).payload()
	}
	_, err := p.pool.Exec(ctx, "INSERT INTO raw_tasks (id, due, payload) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])", rawIDs(first, end), dues, payloads)
	return err
}

func (p plainPostgres) claim(ctx context.Context, first, end int) error {
	rows, err := p.pool.Query(ctx, `UPDATE raw_tasks SET state = 1, holder = $2, lease = $3, token = token + 1, attempt = attempt + 1
		WHERE id = ANY($1) AND state = 0 RETURNING id, token, attempt, payload`, rawIDs(first, end), rawHolder, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	defer rows.Close()
	return readClaimed(rows, end-first)
}

// readClaimed reads what a claim gave, as a worker has to.
func readClaimed(rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}, want int) error {
	n := 0
	for ; rows.Next(); n++ {
		var id string
		var token int64
		var attempt int
		var payload []byte
		if err := rows.Scan(&id, &token, &attempt, &payload); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return expectRows(n, want)
}

func (p plainPostgres) finish(ctx context.Context, first, end int) error {
	return p.change(ctx, "UPDATE raw_tasks SET state = 2, due = NULL WHERE id = ANY($1) AND state = 1 AND holder = $2", first, end)
}

func (p plainPostgres) remove(ctx context.Context, first, end int) error {
	return p.change(ctx, "DELETE FROM raw_tasks WHERE id = ANY($1) AND state = 1 AND holder = $2", first, end)
}

func (p plainPostgres) change(ctx context.Context, statement string, first, end int) error {
	tag, err := p.pool.Exec(ctx, statement, rawIDs(first, end), rawHolder)
	if err != nil {
		return err
	}
	return expectRows(int(tag.RowsAffected()), end-first)
}

func (p plainPostgres) tidy(ctx context.Context) error { return tidyPostgres(ctx, p.pool) }

// plainMySQL is the same on MariaDB and MySQL.
type plainMySQL struct{ db *sql.DB }

func (p plainMySQL) create(ctx context.Context) error {
	_, err := p.db.ExecContext(ctx, `CREATE TABLE raw_tasks (id varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, due bigint,
		state tinyint NOT NULL DEFAULT 0, holder varchar(64), lease bigint NOT NULL DEFAULT 0, token bigint NOT NULL DEFAULT 0, attempt int NOT NULL DEFAULT 0,
		payload mediumblob NOT NULL, KEY raw_due (due))`)
	return err
}

func (p plainMySQL) insert(ctx context.Context, first, end int) error {
	var text strings.Builder
	text.WriteString("INSERT INTO raw_tasks (id, due, payload) VALUES ")
	for i := first; i < end; i++ {
		if i > first {
			text.WriteByte(',')
		}
		// Nothing in the payload has to be escaped.
		fmt.Fprintf(&text, "('%s',%d,'%s')", taskID(i), time.Now().UnixMilli(), newTask(i, time.Time{}).payload())
	}
	_, err := p.db.ExecContext(ctx, text.String())
	return err
}

// in is a list of ids, as literals.
func in(first, end int) string { return "('" + strings.Join(rawIDs(first, end), "','") + "')" }

func (p plainMySQL) claim(ctx context.Context, first, end int) error {
	list := in(first, end)
	if err := p.change(ctx, fmt.Sprintf("UPDATE raw_tasks SET state = 1, holder = '%s', lease = %d, token = token + 1, attempt = attempt + 1 WHERE id IN %s AND state = 0",
		rawHolder, time.Now().UnixMilli(), list), first, end); err != nil {
		return err
	}
	rows, err := p.db.QueryContext(ctx, "SELECT id, token, attempt, payload FROM raw_tasks WHERE id IN "+list+" AND holder = '"+rawHolder+"'")
	if err != nil {
		return err
	}
	defer rows.Close()
	return readClaimed(rows, end-first)
}

func (p plainMySQL) finish(ctx context.Context, first, end int) error {
	return p.change(ctx, "UPDATE raw_tasks SET state = 2, due = NULL WHERE id IN "+in(first, end)+" AND state = 1 AND holder = '"+rawHolder+"'", first, end)
}

func (p plainMySQL) remove(ctx context.Context, first, end int) error {
	return p.change(ctx, "DELETE FROM raw_tasks WHERE id IN "+in(first, end)+" AND state = 1 AND holder = '"+rawHolder+"'", first, end)
}

func (p plainMySQL) change(ctx context.Context, statement string, first, end int) error {
	result, err := p.db.ExecContext(ctx, statement)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	return expectRows(int(n), end-first)
}

func (p plainMySQL) tidy(context.Context) error { return nil }

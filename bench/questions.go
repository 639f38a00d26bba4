package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// questions is how much a system's servers have been asked since they started, in
// their own counting: Redis's commands, those inside of scripts included; Postgres's
// transactions, which are single statements where nothing opens one, those of its
// own cleaning up included; MariaDB's and MySQL's questions. Asking counts, too.
func (m *machine) questions(ctx context.Context, s system) (map[serverKind]int64, error) {
	counts := map[serverKind]int64{}
	for _, kind := range s.servers {
		running, err := m.server(kind)
		if err != nil {
			return nil, err
		}
		var n int64
		switch kind {
		case server.Redis:
			n, err = redisCommands(ctx, running.Addr())
		case server.Postgres:
			n, err = postgresTransactions(ctx, running.Addr())
		default:
			n, err = mysqlQuestions(ctx, running.Addr())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		counts[kind] = n
	}
	return counts, nil
}

func redisCommands(ctx context.Context, addr string) (n int64, err error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
	defer func() { err = errors.Join(err, client.Close()) }()
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(infoField(info, "total_commands_processed"), 10, 64)
}

// postgresTransactions leaves out the database postgres, where the harness asks.
func postgresTransactions(ctx context.Context, addr string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "SELECT coalesce(sum(xact_commit + xact_rollback), 0)::bigint FROM pg_stat_database WHERE datname LIKE 'bench%'").Scan(&n)
	return n, err
}

func mysqlQuestions(ctx context.Context, addr string) (n int64, err error) {
	db, err := sql.Open("mysql", "root@tcp("+addr+")/")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var name string
	err = db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
	return n, err
}

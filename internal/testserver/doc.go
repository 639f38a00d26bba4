// Package testserver hands real servers to tests: one of each kind shared by a
// test binary, with a database of its own for each test, or a private one that
// a test may kill, freeze and restart.
//
//	url := testserver.Redis(t)      // redis://127.0.0.1:PORT/0; use a queue name of your own
//	dsn := testserver.MariaDB(t)    // root@tcp(127.0.0.1:PORT)/db_…, a fresh database, without options
//	url := testserver.Postgres(t)   // postgres://postgres@127.0.0.1:PORT/db_…?sslmode=disable
//	srv := testserver.PrivateRedis(t)
//	srv.Kill(); srv.Restart()
//
// Where DUECLAIM_TEST_REDIS, _MARIADB, _MYSQL or _POSTGRES names a running
// server, that one is used instead of a shared one of our own (not instead of
// a private one). Its user must be able to create databases.
//
// A server that can't be had skips the test, with a message of the fixed form
// "NOT tested: <kind>: <reason>" that the report of make test finds. It fails
// the test where the kind is required: named in DUECLAIM_REQUIRE (a comma
// list), or redis, mariadb and postgres with CI=true.
package testserver

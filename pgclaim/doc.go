// Package pgclaim is a claim store on Postgres 13 or newer, through a
// *pgxpool.Pool ([New]) or a *sql.DB of pgx/stdlib ([NewSQL]).
//
// # On a table of the user's own
//
// [NewTable] and [NewSQLTable] claim the rows of a table that claim.Table
// describes; [Table.Verify] says how the two go together, and all that follows
// here holds for it too, in each of its modes. Types that fit:
//
//   - id: text, varchar, char(n), citext and domains over them, compared with the
//     entry byte by byte (the spaces that pad char(n) apart); uuid; smallint,
//     integer, bigint. An id beyond the column's range is one that isn't there.
//   - state: text and an enum, integers, boolean (mode claim.Transition). Not a
//     domain over an enum, which Postgres compares with nothing.
//   - times: bigint and integer; timestamp for claim.DateTime; timestamptz for
//     claim.Timestamp. The session's TimeZone and DateStyle don't matter to
//     dueclaim, only to statements that write now() into a timestamp. infinity is
//     never due.
//   - payload: bytea, text, json and jsonb, as Postgres shows it.
//
// A claim locks its rows FOR NO KEY UPDATE, so that inserts of rows that refer to
// them go on. In every mode it finds them by the index on the id alone, whatever
// the statistics say. Sweeps go by the index that Verify asks for; its comment
// has the rule for partial ones.
//
// # Through a pooler
//
// The store keeps no session state: no LISTEN, no session lock, no SET that outlives its
// transaction, no prepared statement that outlives a round trip. It works in every query exec
// mode of pgx and behind a pooler in transaction mode. Where the pool's mode is
// pgx.QueryExecModeCacheStatement (the default of pgx), the store's own
// statements run in pgx.QueryExecModeCacheDescribe instead: a named prepared
// statement is planned once for all, and a plan made while the table was empty
// would read the whole table after a burst of inserts. (pgx.QueryExecModeExec
// instead where the driver is wrapped in another one that hides the mode.)
//
// # Locks
//
// The store's calls pass over rows that are locked by another transaction and say
// so; they never wait for them. There is one exception: an insert waits, until ctx is
// done, for another transaction that has inserted or replaced the same id and not yet
// committed. All wait for a lock on the whole table (ALTER TABLE, LOCK TABLE). What waited
// beyond the call's By, there or in a pooler, undoes itself when it comes to its rows: the
// server's log then has an error with "the call had been given up". In the caller's transaction SettleTx waits for a locked
// row as well. When ctx is done pgx closes the connection, and the transaction on it
// is lost.
//
// All statements lock rows in the order of their ids, so that they don't deadlock
// with one another; a caller's transaction that locks more can, and gets 40P01.
//
// # Isolation
//
// The statements are right under each isolation level. Under REPEATABLE READ and
// SERIALIZABLE a row that another transaction changed meanwhile makes the call
// fail with 40001, which changes nothing and may be repeated: READ COMMITTED,
// Postgres's default, is the one to use. That goes for the transactions of
// InsertTx and SettleTx above all: a heartbeat changes the row of a running task
// every few seconds.
//
// # Durability
//
// A commit counts once the server has acknowledged it. With synchronous_commit =
// off, or after a failover to an asynchronous standby, commits can be undone,
// and a task can run again. A synchronous one is waited for by each commit, and also
// before a repeat says that an earlier try had taken effect: when that try was given up
// while it waited, Postgres had committed all the same.
package pgclaim

// Package sqliteclaim is a [core.Store] on a SQLite file, through the pure Go
// driver modernc.org/sqlite: the embedded default, which needs no server.
//
// # What it is good for, and what not
//
// Any number of processes on one host may share the file; each call is one
// short transaction that SQLite runs alone, so a large batch is the way to
// speed. The file must be on a local disk: the locks of network file systems
// don't hold what SQLite needs. There is no server, so there is no server's
// clock either: a Store is no [core.TimeSource], all its users are on one host
// and share that host's clock.
//
// A commit is on disk before a call returns (synchronous FULL): neither the end
// of a process, by SIGKILL too, nor a loss of power takes back what was
// answered.
//
// # Open or New
//
// [Open] opens a file as the protocol needs it. [New] takes a *sql.DB of
// your own, refuses one whose settings would break a promise, and says what to
// set; so the tasks can stand in the same file as your tables, and [Store.InsertTx]
// and [Store.SettleTx] make a task part of your own transaction.
//
// A database in memory is refused by both: each connection would have one of its
// own, and no other process could see it. [claim.Memory] is the store for that.
package sqliteclaim

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
// Other programs may write to the file too. They need a busy_timeout of 5 s or more: a
// Store that is at work without pause leaves the file alone for a tenth of a second once
// in 4.5 s, in which SQLite's own way of waiting finds it free.
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
//
// # Your own table
//
// [Table] is a [core.Claimer] on a table of your own, as a [claim.Table] describes
// it: [OpenTable] opens the file, [NewTable] takes a *sql.DB of yours.
// [Table.Verify] reads the table's definition, some of its rows and the
// connection's settings and says what is wrong; [Table.Suggest] prints the
// statements that lead to mode Full. [Table.SettleTx] and [Table.Transition] make
// the row's completion part of your own transaction.
//
// SQLite lets a column hold anything, whatever type it declares. A Table goes by
// what is there: a row whose id or due time is not of the form that is mapped is
// never claimed. Text in a [claim.DateTime] column compares as text.
package sqliteclaim

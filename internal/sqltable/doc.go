// Package sqltable is the engine under the SQL adapters' Table: a core.Claimer on
// a user's own table, in the three modes of claim.Table. It decides what is read,
// what is changed under which guard and what the answers mean. An adapter gives it
// a [Conn], which writes an [Expr] as its database's SQL and runs it:
//
//   - Query is a plain SELECT. Query.Current asks for the newest commit also
//     inside of a transaction with one snapshot (MySQL: FOR UPDATE there).
//   - Change changes rows found by their ids, each only where the guard holds on
//     its newest version, in one short statement where the database can; locked
//     rows are passed over (in a user's transaction they are waited for). With
//     Change.Exact it must know of each item whether its row changed (MySQL: a
//     statement an item); else it may say that it doesn't know.
//
// Two handles on the same parts are needed: a Conn on the pool, whose statements
// each are a transaction of their own, and one for a transaction that the user
// began.
//
// What an Expr is made of is in expr.go: text with the table's columns, values and
// the items of a batch. Every name is quoted by the adapter; the values are
// arguments, or literals that can't be anything else. An id is looked up by the
// column's own comparison, so that its index serves, and is compared once more
// byte by byte: Conn adds that to every Change, and to [IDIn].
package sqltable

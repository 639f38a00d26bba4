// Package sqlmocked plays the scripts of conformance.TestSQL on
// github.com/DATA-DOG/go-sqlmock: a *sql.DB that knows no SQL, and answers each
// expected statement with what the script says.
//
//	conformance.TestSQL(t, conformance.SQL{Play: sqlmocked.Play, …})
//
// It is a package of its own so that only those who want it depend on sqlmock.
package sqlmocked

// Package backends lists the indexes, the stores and the pairs of them that the
// tests must name, tested or not, by the attribute "dueclaim.backend".
package backends

import (
	"slices"

	"github.com/dueclaim/dueclaim/internal/testserver/require"
	"github.com/dueclaim/dueclaim/internal/testserver/server"
)

// The classes of rows, in the order in which they are reported.
const (
	Index = "index"
	Store = "store"
	// Table is a store's claimer on a table of the user's own, in one of its modes.
	Table = "table"
	Pair  = "pair"
	// Double is an adapter whose statements are checked against scripts on a double
	// of its driver, without a server.
	Double = "double"
)

// Classes are all of them.
var Classes = []string{Index, Store, Table, Pair, Double}

// Row is one backend or one pair.
type Row struct {
	Class string        // one of Classes
	Name  string        // such as "redis" or "redis+mariadb"
	Needs []server.Kind // the servers without which it can't be tested
}

// String is the value of the attribute, such as "index:redis".
func (r Row) String() string { return r.Class + ":" + r.Name }

// Required says whether a run of the tests fails when the row was not tested.
func (r Row) Required() bool {
	if len(r.Needs) == 0 {
		return require.CI() || require.Named(r.Name) // there is no excuse
	}
	return !slices.ContainsFunc(r.Needs, func(k server.Kind) bool { return !require.Kind(k) })
}

var indexes = []Row{
	{Name: "heap"},
	{Name: "redis", Needs: []server.Kind{server.Redis}},
	{Name: "redis cluster", Needs: []server.Kind{server.Redis}},
	{Name: "redis double"},                                // miniredis
	{Name: "valkey", Needs: []server.Kind{server.Valkey}}, // reported where it is at hand
}

var stores = []Row{
	{Name: "memory"},
	{Name: "sqlite"},
	{Name: "mariadb", Needs: []server.Kind{server.MariaDB}},
	{Name: "mysql", Needs: []server.Kind{server.MySQL}},
	{Name: "postgres (pgx)", Needs: []server.Kind{server.Postgres}},
	{Name: "postgres (database/sql)", Needs: []server.Kind{server.Postgres}},
	{Name: "postgres (pgbouncer)", Needs: []server.Kind{server.Postgres, server.PgBouncer}},
}

// paired are the indexes that are tested with every store.
var paired = indexes[:2]

var doubles = []Row{{Name: "mysqlclaim on sqlmock"}, {Name: "pgclaim on sqlmock"}}

// modes are the configurations of a user's table, as internal/tabletest names them.
var modes = []string{"Full", "Full, due time only read", "StatusUpdated", "Transition"}

// tabled are the databases that have users' tables.
var tabled = []Row{
	{Name: "sqlite"},
	{Name: "mariadb", Needs: []server.Kind{server.MariaDB}},
	{Name: "mysql", Needs: []server.Kind{server.MySQL}},
	{Name: "postgres", Needs: []server.Kind{server.Postgres}},
}

// Rows returns all of them, in the order of their classes.
func Rows() []Row {
	var all []Row
	for _, r := range indexes {
		all = append(all, Row{Index, r.Name, r.Needs})
	}
	for _, r := range stores {
		all = append(all, Row{Store, r.Name, r.Needs})
	}
	for _, r := range tabled {
		for _, mode := range modes {
			all = append(all, Row{Table, r.Name + ", " + mode, r.Needs})
		}
	}
	for _, i := range paired {
		for _, s := range stores {
			all = append(all, Row{Pair, i.Name + "+" + s.Name, slices.Concat(i.Needs, s.Needs)})
		}
	}
	for _, r := range doubles {
		all = append(all, Row{Double, r.Name, r.Needs})
	}
	return all
}

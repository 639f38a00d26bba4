// Package injection holds a test that reads the adapters' source.
package injection

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sqlText is a literal that is a part of a statement.
var sqlText = regexp.MustCompile(`\b(SELECT|UPDATE|INSERT INTO|DELETE|FROM|WHERE|SET|VALUES|JOIN|ORDER BY|LIMIT|RETURNING|AND|OR|IN \(|CREATE|ALTER|DROP|EXPLAIN|PRAGMA|SHOW|CAST|CONVERT|COLLATE|INTERVAL|UNION|AS|COMMENT|redis\.call)\b`)

// messages are calls whose texts people read and nobody runs.
var messages = map[string]bool{"Errorf": true, "New": true, "fault": true, "warn": true, "advise": true, "Add": true, "alter": true, "note": true, "info": true}

// TestNoStatementIsBuiltFromData: each thing that is put into the text of a statement
// by +, by a format or by mysqlclaim's text.sql is in allowed.txt, where somebody has
// looked at it: a constant, a quoted name, a number, or text of these. A new one fails
// until it has been looked at too.
func TestNoStatementIsBuiltFromData(t *testing.T) {
	allowed := readAllowed(t)
	used := map[string]bool{}
	for _, pkg := range []string{"mysqlclaim", "pgclaim", "sqliteclaim", "internal/sqltable", "redisindex"} {
		for where, operand := range operands(t, filepath.Join("..", "..", pkg)) {
			line := pkg + ": " + operand
			used[line] = true
			assert.True(t, allowed[line], "%s: %s goes into a statement's text. If it is a value, make it an argument (mysqlclaim: val, int, hex); if it is a checked and quoted name or a constant, add to allowed.txt: %s", where, operand, line)
		}
	}
	for line := range allowed {
		assert.True(t, used[line], "allowed.txt has what is nowhere any more: %s", line)
	}
}

// TestTheReaderFindsWhatItIsFor: data in a statement's text is seen, in each form.
func TestTheReaderFindsWhatItIsFor(t *testing.T) {
	dir := t.TempDir()
	src := "package p\n\nfunc f() {\n" +
		"q := \"SELECT a FROM t WHERE id = '\" + id + \"'\"\n" +
		"q = fmt.Sprintf(\"DELETE FROM t WHERE id = '%s'\", data)\n" +
		"t.sql(\" AND x = \", value)\nq += \" LIMIT \" + limit\n_ = fmt.Errorf(\"no SELECT on %s\", name)\n" +
		"client.Eval(ctx, \"return redis.call('GET', '\" + key + \"')\")\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600))
	var got []string
	for _, operand := range operands(t, dir) {
		got = append(got, operand)
	}
	sort.Strings(got)
	assert.Equal(t, []string{"data", "id", "key", "limit", "value"}, got)
}

func readAllowed(t *testing.T) map[string]bool {
	t.Helper()
	f, err := os.Open("allowed.txt")
	require.NoError(t, err)
	defer f.Close()
	all := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "  # ")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all[line] = true
		}
	}
	return all
}

// operands are the expressions that aren't literals in what builds statements, by
// place.
func operands(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	found := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		require.NoError(t, err)
		add := func(e ast.Expr) {
			var b strings.Builder
			require.NoError(t, printer.Fprint(&b, set, e))
			found[fmt.Sprint(set.Position(e.Pos()))] = strings.Join(strings.Fields(b.String()), " ")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := called(n)
				if messages[name] {
					return false
				}
				if parts, ok := built(n, name); ok {
					for _, p := range parts {
						add(p)
					}
				}
			case *ast.BinaryExpr:
				if n.Op != token.ADD {
					return true
				}
				leaves := flat(n)
				for _, leaf := range leaves {
					if text(leaf) != "" && sqlText.MatchString(text(leaf)) {
						for _, other := range leaves {
							if _, literal := other.(*ast.BasicLit); !literal {
								add(other)
							}
						}
						break
					}
				}
				return false
			}
			return true
		})
	}
	return found
}

// built are the parts of a call that makes text: mysqlclaim's sql, or a format.
func built(call *ast.CallExpr, name string) (parts []ast.Expr, ok bool) {
	switch name {
	case "sql":
		parts = call.Args
	case "Sprintf", "Fprintf", "Appendf":
		ok := false
		for _, a := range call.Args {
			ok = ok || sqlText.MatchString(text(a))
		}
		if !ok {
			return nil, false
		}
		parts = call.Args
	default:
		return nil, false
	}
	var data []ast.Expr
	for _, p := range parts {
		for _, leaf := range flat(p) {
			if _, literal := leaf.(*ast.BasicLit); !literal {
				data = append(data, leaf)
			}
		}
	}
	return data, true
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		return lit.Value
	}
	return ""
}

// flat are the parts of a sum.
func flat(e ast.Expr) []ast.Expr {
	switch x := e.(type) {
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return append(flat(x.X), flat(x.Y)...)
		}
	case *ast.ParenExpr:
		return flat(x.X)
	}
	return []ast.Expr{e}
}

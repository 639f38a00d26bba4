package mysqlclaim

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// column is a column's definition, with what it takes to write it down again.
type column struct {
	name, data, full   string // data is the type's word, full the whole type
	charset, collation string
	nullable           bool
	standard           string // the DEFAULT as SQL, empty: none
	onUpdate           string // the ON UPDATE as SQL, empty: none
	generated          bool
	increments         bool
	invisible          bool
	comment            string
	chars              int64 // of a text or byte string, at most
	digits             int   // of a second's fraction
	privileges         string
	check              string // the CHECK that is part of the column (MariaDB), empty: none
}

var clock = regexp.MustCompile(`(?i)current_timestamp(\([0-9]*\))?`)

// readExtra takes the column's extra words apart.
func (v *column) readExtra(extra string) {
	low := strings.ToLower(extra)
	if _, after, ok := strings.Cut(low, "on update "); ok {
		v.onUpdate = clock.FindString(after)
	}
	v.generated = strings.Contains(low, "virtual generated") || strings.Contains(low, "stored generated")
	v.increments = strings.Contains(low, "auto_increment")
	v.invisible = strings.Contains(low, "invisible")
}

// readDefault brings the default into SQL: MariaDB gives it so, MySQL gives a
// constant bare and an expression with its quotes escaped.
func (v *column) readDefault(standard sql.NullString, mariadb, expression bool) {
	s := standard.String
	switch {
	case !standard.Valid, mariadb && s == "NULL":
	case mariadb, v.data == "bit":
		v.standard = s
	case !expression && clock.FindString(s) == s && s != "":
		v.standard = s // a DATETIME's, before expressions were marked
	case !expression:
		v.standard = quoteText(s)
	case clock.FindString(s) == s:
		v.standard = s
	default:
		v.standard = "(" + strings.ReplaceAll(s, `\'`, `'`) + ")"
	}
}

// definition is what stands after the column's name in MODIFY.
func (v column) definition() string {
	b := v.full
	if v.charset != "" {
		b += " CHARACTER SET " + v.charset + " COLLATE " + v.collation
	}
	if v.nullable {
		b += " NULL"
	} else {
		b += " NOT NULL"
	}
	if v.standard != "" {
		b += " DEFAULT " + v.standard
	}
	if v.onUpdate != "" {
		b += " ON UPDATE " + v.onUpdate
	}
	if v.increments {
		b += " AUTO_INCREMENT"
	}
	if v.invisible {
		b += " INVISIBLE"
	}
	if v.comment != "" {
		b += " COMMENT " + quoteText(v.comment)
	}
	if v.check != "" {
		b += " CHECK (" + v.check + ")"
	}
	return b
}

// modify is the clause of ALTER TABLE that makes the column as v is now.
func (v column) modify() string { return "MODIFY " + quoteName(v.name) + " " + v.definition() }

// retyped is the column with another type. A default that the new type may not
// have goes.
func (v column) retyped(full string) column {
	v.full = full
	v.data, _, _ = strings.Cut(strings.ToLower(full), "(")
	if !isText(v.data) && v.data != "enum" {
		v.charset, v.collation = "", ""
	}
	if strings.HasSuffix(v.data, "text") {
		v.standard = ""
	}
	return v
}

// withDigits is the column of a time with n digits of a fraction, which its
// defaults must have too.
func (v column) withDigits(n int) column {
	v.full = fmt.Sprintf("%s(%d)", v.data, n)
	now := fmt.Sprintf("CURRENT_TIMESTAMP(%d)", n)
	v.standard = clock.ReplaceAllString(v.standard, now)
	v.onUpdate = clock.ReplaceAllString(v.onUpdate, now)
	return v
}

// members are the values of an ENUM.
func (v column) members() []string {
	var list []string
	s := strings.TrimSuffix(v.full[min(len("enum("), len(v.full)):], ")")
	for strings.HasPrefix(s, "'") {
		value, rest := cutQuoted(s[1:])
		list = append(list, value)
		s = strings.TrimPrefix(rest, ",")
	}
	return list
}

// cutQuoted reads up to the closing quote.
func cutQuoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\'' && i+1 < len(s) && s[i+1] == '\'', s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '\'':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// withMembers is the ENUM with more values at its end: those that are there keep
// their places, so that no row is rewritten.
func (v column) withMembers(more []string) column {
	list := strings.TrimSuffix(v.full, ")")
	for _, m := range more {
		list += "," + quoteText(m)
	}
	v.full = list + ")"
	return v
}

// unsigned tells whether it holds integers that one of 64 bits with a sign can't.
func (v column) unsigned() bool {
	return v.data == "bigint" && strings.Contains(v.full, "unsigned")
}

func isInteger(data string) bool {
	switch data {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return true
	}
	return false
}

func isText(data string) bool {
	return data == "char" || data == "varchar" || strings.HasSuffix(data, "text")
}

func isBytes(data string) bool {
	return data == "binary" || data == "varbinary" || strings.HasSuffix(data, "blob")
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// quoteText is a literal for people to run. With a backslash in it, it counts on
// an sql_mode without NO_BACKSLASH_ESCAPES, the default.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(s) + "'"
}

package mysqlclaim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// Least sizes of text columns.
const (
	holderChars = 64
	errorBytes  = 4096
)

// ownDefinition is what a column should be that nobody but dueclaim needs, also
// one that Suggest adds: an INSERT of the user's need not know it. A time's
// depends on its kind. Empty for the user's columns.
func ownDefinition(col claim.Column) string {
	switch col.Role {
	case "Token":
		return "BIGINT NOT NULL DEFAULT 0"
	case "Holder":
		return "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''"
	case "Lease", "Updated":
		return timeType(*col.Time) + " NULL"
	case "Attempts", "Crashes":
		return "INT NOT NULL DEFAULT 0"
	case "LastError":
		return "TEXT CHARACTER SET utf8mb4 NULL"
	default:
		return ""
	}
}

func timeType(c claim.TimeColumn) string {
	word := map[claim.TimeKind]string{claim.UnixMilli: "BIGINT", claim.UnixSecond: "BIGINT", claim.DateTime: "DATETIME", claim.Timestamp: "TIMESTAMP"}[c.Kind]
	if c.Digits > 0 {
		word += "(" + strconv.Itoa(c.Digits) + ")"
	}
	return word
}

// columns judges each mapped column.
func (v *verifier) columns() {
	for _, col := range v.t.def.Columns() {
		facts := v.c.column(col.Name)
		if facts == nil {
			mend := ""
			if def := ownDefinition(col); def != "" {
				mend = v.t.alter("ADD COLUMN " + quoteName(col.Name) + " " + def)
			}
			v.fault("column-missing", col.Name, "the table has no such column that this user can see; it is mapped as "+col.Role, mend)
			continue
		}
		if col.Written && facts.generated {
			v.fault("generated", col.Name, "it is a generated column, and dueclaim has to write it ("+col.Role+")", "map a plain column")
			continue
		}
		if want := v.misfit(col, *facts); want != "" {
			mend := "map the kind that it has, or another column"
			if def := ownDefinition(col); def != "" && col.Role != "Updated" {
				mend = v.t.alter("MODIFY " + quoteName(col.Name) + " " + def)
			}
			v.fault("column-type", col.Name, fmt.Sprintf("it is %s; as %s it must be %s", facts.full, col.Role, want), mend)
			continue
		}
		v.sizes(col, *facts)
		v.nulls(col, *facts)
		if col.Time != nil {
			v.time(col, *facts)
		}
	}
	v.state()
	v.id()
}

// misfit says which type a column should have, empty if it has it.
func (v *verifier) misfit(col claim.Column, f column) string {
	var ok bool
	var want string
	str := isText(f.data) || isBytes(f.data)
	switch {
	case col.Time != nil:
		switch col.Time.Kind {
		case claim.UnixMilli:
			ok, want = f.data == "bigint", "BIGINT"
		case claim.UnixSecond:
			ok, want = f.data == "bigint" || f.data == "int", "BIGINT"
		case claim.DateTime:
			ok, want = f.data == "datetime", "DATETIME"
		default:
			ok, want = f.data == "timestamp", "TIMESTAMP"
		}
	case col.Role == "ID":
		ok, want = v.fitsID(f)
	case col.Role == "State":
		ok, want = fitsValue(v.t.def.State.Pending, f)
	case strings.HasPrefix(col.Role, "Where"):
		where := v.where(col.Role)
		ok = where.IsNull
		if !ok {
			ok, want = fitsValue(where.Equals, f)
		}
	case col.Role == "Token":
		ok, want = f.data == "bigint", "BIGINT"
	case col.Role == "Attempts" || col.Role == "Crashes":
		ok, want = isInteger(f.data) && f.data != "tinyint", "an integer of 16 bits or more"
	case col.Role == "Holder":
		ok, want = str && f.data != "binary", "text, not padded, of 64 characters or more"
	case col.Role == "LastError":
		ok, want = str && f.data != "binary", "text"
	default: // Payload, Kind
		ok, want = str || f.data == "json" || f.data == "enum", "text or bytes"
	}
	if ok {
		return ""
	}
	return want
}

func (v *verifier) fitsID(f column) (bool, string) {
	switch v.t.def.ID.Kind {
	case claim.IntegerID:
		return isInteger(f.data), "an integer (IntegerID)"
	case claim.UUIDID:
		text := (isText(f.data) || f.data == "varbinary" || f.data == "binary" && f.chars == 36) && f.chars >= 36
		return text || f.data == "uuid", "text of 36 characters or uuid (UUIDID)"
	case claim.BinaryUUIDID:
		return isBytes(f.data) && f.chars >= 16 && !(f.data == "binary" && f.chars > 16), "BINARY(16) (BinaryUUIDID)"
	default:
		return isText(f.data) || isBytes(f.data), "text (TextID)"
	}
}

func fitsValue(value claim.Value, f column) (bool, string) {
	if value.Kind() == claim.TextValue {
		return f.data == "enum" || isText(f.data) || f.data == "varbinary", "text or ENUM, as the value " + value.String() + " is text"
	}
	return isInteger(f.data), "an integer, as the value " + value.String() + " is none of text"
}

// where returns the condition that a role names.
func (v *verifier) where(role string) claim.Condition {
	i, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(role, "Where["), "]"))
	return v.t.def.Where[i]
}

// sizes finds text columns that are too short for what is written to them.
func (v *verifier) sizes(col claim.Column, f column) {
	const short = "text-too-short"
	switch {
	case col.Role == "Holder" && f.chars < holderChars:
		to := f.retyped(fmt.Sprintf("VARCHAR(%d)", holderChars))
		if isBytes(f.data) {
			to = f.retyped(fmt.Sprintf("VARBINARY(%d)", holderChars))
		}
		v.fault(short, col.Name, fmt.Sprintf("it holds %d characters, a holder's name has up to %d", f.chars, holderChars), v.t.alter(to.modify()))
	case col.Role == "LastError" && f.chars < errorBytes:
		to := f.retyped("TEXT")
		if isBytes(f.data) {
			to = f.retyped("BLOB")
		}
		v.warn(short, col.Name, fmt.Sprintf("it holds %d characters, a failure's text has up to %d bytes: of longer ones only the beginning is kept, or nothing", f.chars, errorBytes), v.t.alter(to.modify()))
	case col.Role == "State" && f.data != "enum" && !isInteger(f.data):
		longest := int64(0)
		for _, value := range v.states() {
			longest = max(longest, int64(len([]rune(value.Text()))))
		}
		if f.chars < longest {
			to := f.retyped(fmt.Sprintf("%s(%d)", strings.ToUpper(f.data), longest))
			v.fault(short, col.Name, fmt.Sprintf("it holds %d characters, the longest state has %d", f.chars, longest), v.t.alter(to.modify()))
		}
	}
	if col.Role == "LastError" && f.charset != "" && f.charset != "utf8mb4" {
		to := f
		to.charset, to.collation = "utf8mb4", "utf8mb4_bin"
		v.warn("charset", col.Name, "its character set is "+f.charset+": of a failure's text only the characters that it has can be kept", v.t.alter(to.modify()))
	}
}

// nulls judges NULL, and its absence.
func (v *verifier) nulls(col claim.Column, f column) {
	meaning := ""
	switch {
	case col.Role == "State":
		meaning = "a row with NULL is no task's"
	case col.Role == "Due.Column" || col.Role == "Due.Base":
		meaning = "a row with NULL is never due"
	case col.Role == "Updated" && v.t.def.Mode() == claim.StatusUpdated:
		meaning = "a row that something else put into processing with NULL is left alone for ever: nobody takes it over"
	}
	if meaning != "" && f.nullable {
		to := f
		to.nullable = false
		v.warn("nullable", col.Name, "it may be NULL: "+meaning, v.t.alter(to.modify()))
	}
	if col.Role == "Lease" && !f.nullable {
		to := f
		to.nullable, to.standard = true, ""
		v.fault("lease-not-null", col.Name, "it is NOT NULL, and NULL stands for no lease", v.t.alter(to.modify()))
		return
	}
	def := ownDefinition(col)
	if def == "" || col.Role == "Updated" || f.nullable || f.standard != "" || f.generated || f.increments {
		return
	}
	mend := v.t.alter("MODIFY " + quoteName(col.Name) + " " + def)
	if _, standard, ok := strings.Cut(def, " DEFAULT "); ok && !strings.HasSuffix(f.data, "text") && !strings.HasSuffix(f.data, "blob") {
		mend = v.t.alter("ALTER COLUMN " + quoteName(col.Name) + " SET DEFAULT " + standard)
	}
	v.warn("not-null-without-default", col.Name, "it is NOT NULL without a default: each INSERT of yours would have to fill it", mend)
}

// time judges a column that holds an instant.
func (v *verifier) time(col claim.Column, f column) {
	c := *col.Time
	if f.onUpdate != "" {
		to := f
		to.onUpdate = ""
		switch {
		case col.Role == "Due.Base" && v.t.def.Mode() == claim.Transition:
			v.Add(claim.Info, "on-update", col.Name, "it has ON UPDATE "+f.onUpdate+": a row is due Due.After after its last change, whatever changed", "")
		case col.Role == "Due.Base":
			v.fault("on-update", col.Name, "it has ON UPDATE "+f.onUpdate+": each claim, heartbeat and retry of dueclaim's own moves it to now, and so puts the row off",
				"leave State.Processing and what goes with it out (mode Transition), which writes nothing before the step, or "+v.t.alter(to.modify()))
		case col.Role != "Updated":
			v.fault("on-update", col.Name, "it has ON UPDATE "+f.onUpdate+": any UPDATE that doesn't write it moves it to now ("+col.Role+")", v.t.alter(to.modify()))
		case v.t.def.Mode() == claim.StatusUpdated:
			v.advise("on-update", col.Name, "it has ON UPDATE "+f.onUpdate+": any UPDATE of yours that touches a row in processing ends its grant", "")
		}
	}
	whole := "run times are up to a second late, leases up to a second longer"
	switch {
	case c.Kind == claim.UnixSecond:
		v.advise("time-without-fraction", col.Name, "it holds whole seconds: "+whole, "")
		if f.data == "int" && !strings.Contains(f.full, "unsigned") {
			v.advise("ends-2038", col.Name, "INT ends in January 2038", v.t.alter(f.retyped("BIGINT").modify()))
		}
	case c.Kind == claim.UnixMilli:
	case f.digits < c.Digits:
		v.fault("time-digits", col.Name, fmt.Sprintf("Digits is %d, and the column keeps %d of the second's fraction", c.Digits, f.digits), v.t.alter(f.withDigits(c.Digits).modify()))
	case f.digits == 0:
		v.advise("time-without-fraction", col.Name, "it holds whole seconds: "+whole, v.t.alter(f.withDigits(3).modify()))
	case f.digits > c.Digits:
		v.advise("time-digits-unused", col.Name, fmt.Sprintf("the column keeps %d digits of the second's fraction and Digits is %d: dueclaim rounds to that", f.digits, c.Digits),
			fmt.Sprintf("set Digits: %d", f.digits))
	}
	if c.Kind == claim.Timestamp && (col.Role == "Due.Column" || col.Role == "Lease" || col.Role == "Updated") {
		v.advise("ends-2038", col.Name, "on most versions TIMESTAMP ends in January 2038: later times are refused", "")
	}
}

// states are the values that the table's states have.
func (v *verifier) states() []claim.Value {
	s := v.t.def.State
	return slices.DeleteFunc([]claim.Value{s.Pending, s.Processing, s.Done, s.Dead}, claim.Value.IsZero)
}

// state judges the values of ENUMs and the ranges of integers.
func (v *verifier) state() {
	v.values(v.t.def.State.Name, v.states())
	for _, c := range v.t.def.Where {
		if !c.IsNull {
			v.values(c.Column, []claim.Value{c.Equals})
		}
	}
}

func (v *verifier) values(name string, values []claim.Value) {
	f := v.c.column(name)
	if f == nil {
		return
	}
	if lacking := lacking(*f, values); len(lacking) > 0 {
		v.fault("enum-lacks-value", name, "the ENUM lacks "+strings.Join(lacking, ", "), v.t.alter(f.withMembers(lacking).modify()))
	}
	limits := map[string]int64{"tinyint": 1<<7 - 1, "smallint": 1<<15 - 1, "mediumint": 1<<23 - 1, "int": 1<<31 - 1}
	for _, value := range values {
		if f.charset != "" && !representable(f.charset, value.Text()) {
			to := *f
			to.charset, to.collation = "utf8mb4", "utf8mb4_bin"
			v.fault("charset", name, "the value "+value.String()+" has characters that its character set, "+f.charset+", lacks", v.t.alter(to.modify()))
		}
		limit, ok := limits[f.data]
		if ok && value.Kind() == claim.IntValue && (value.Int() > limit || value.Int() < -limit-1) && !strings.Contains(f.full, "unsigned") {
			v.fault("column-type", name, "the value "+value.String()+" doesn't fit into "+f.full, v.t.alter(f.retyped("BIGINT").modify()))
		}
	}
}

// lacking returns those of the values that an ENUM column doesn't have.
func lacking(f column, values []claim.Value) []string {
	if f.data != "enum" {
		return nil
	}
	var list []string
	members := f.members()
	for _, value := range values {
		if value.Kind() == claim.TextValue && !slices.Contains(members, value.Text()) {
			list = append(list, value.Text())
		}
	}
	return list
}

// id judges what the id column needs beyond its type.
func (v *verifier) id() {
	id := v.t.def.ID
	f := v.c.column(id.Name)
	if f == nil {
		return
	}
	if f.nullable {
		to := *f
		to.nullable = false
		v.fault("id-nullable", id.Name, "it may be NULL, and a row with NULL can never be claimed", v.t.alter(to.modify()))
	}
	switch {
	case v.c.beyond:
		v.fault("id-unsigned", id.Name, "there are ids beyond 9223372036854775807, the largest that an id may be: those rows are never claimed", "give such rows other ids, or map another unique column as ID")
	case id.Kind == claim.IntegerID && f.unsigned():
		v.Add(claim.Info, "id-unsigned", id.Name, "it is UNSIGNED: rows with ids beyond 9223372036854775807 would never be claimed; there are none now", "")
	}
	if _, known := holds(f.charset, 'é'); f.charset != "" && !known && id.Kind == claim.TextID {
		v.advise("charset", id.Name, "its character set is "+f.charset+": an entry of the index with characters that it lacks fails the claim of a whole batch", "use ids of ASCII letters and digits, or CHARACTER SET utf8mb4")
	}
	if f.collation != "" {
		to := *f
		to.collation = v.exact(f.charset)
		mend := v.t.alter(to.modify())
		if !strings.HasSuffix(f.collation, "_bin") {
			v.warn("id-collation", id.Name, "its collation is "+f.collation+": several spellings match one row. Only the row's own is claimed; an entry with another one is gone", mend)
		}
		if id.Kind == claim.TextID && v.c.padded[f.collation] && f.data != "char" {
			if v.c.padded[to.collation] {
				mend = "" // this character set has no other
			}
			v.warn("id-padded", id.Name, "its collation is "+f.collation+", which ignores spaces at the end: ids with and without are one row", mend)
		}
	}
	if id.Kind == claim.TextID && (f.data == "char" || f.data == "binary") {
		to := f.retyped(fmt.Sprintf("VAR%s(%d)", strings.ToUpper(f.data), f.chars))
		if f.data == "char" {
			to.collation = v.exact(f.charset)
		}
		v.warn("id-padded", id.Name, f.full+" pads its values: shorter ids are not what was inserted", v.t.alter(to.modify()))
	}
}

// exact is a character set's collation that compares the characters as they are,
// without padding where there is such a one.
func (v *verifier) exact(charset string) string {
	switch {
	case v.c.mariadb:
		return charset + "_nopad_bin"
	case charset == "utf8mb4":
		return "utf8mb4_0900_bin"
	default:
		return charset + "_bin"
	}
}

package pgclaim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dueclaim/dueclaim/claim"
)

// values judges the type of a column by the fixed values that it must hold; zero
// ones are none.
func (v *verifier) values(p claim.Column, c attribute, all ...claim.Value) {
	values := slices.DeleteFunc(all, claim.Value.IsZero)
	switch values[0].Kind() {
	case claim.BoolValue:
		v.want(p, c, []string{"bool"}, "boolean, as its values are", "")
	case claim.IntValue:
		if v.want(p, c, intTypes, "an integer type, as its values are", "") {
			v.integers(p, c, values)
		}
	default:
		if v.want(p, c, append([]string{"enum"}, looseTypes...), "text or an enum, as its values are", "") {
			if c.Base == "enum" && c.Type != c.BaseType {
				v.fault("column-type", c.Name, fmt.Sprintf("the column (%s) is the domain %s over an enum, which Postgres compares with nothing", p.Role, c.Type), v.alter(c.Name, "TYPE "+c.BaseType))
			}
			v.texts(p, c, values)
		}
	}
	for _, k := range v.rel.Checks {
		if k.Column == c.Num {
			v.checked(p, c, k, values)
		}
	}
}

func (v *verifier) integers(p claim.Column, c attribute, values []claim.Value) {
	bits := map[string]int{"int2": 16, "int4": 32, "int8": 64}[c.Base]
	for _, value := range values {
		if _, err := strconv.ParseInt(value.Column(), 10, bits); err != nil {
			v.fault("column-type", c.Name, fmt.Sprintf("the column (%s) is %s, which can't hold %s", p.Role, c.Type, value), v.alter(c.Name, "TYPE bigint"))
		}
	}
}

func (v *verifier) texts(p claim.Column, c attribute, values []claim.Value) {
	for _, value := range values {
		if c.Base == "enum" && !slices.Contains(c.Labels, value.Text()) {
			v.fault("enum-lacks-value", c.Name, fmt.Sprintf("the enum %s of the column (%s) has no value %s", c.BaseType, p.Role, value),
				fmt.Sprintf("ALTER TYPE %s ADD VALUE %s", c.BaseType, literal(value)))
		}
		v.room(p, c, utf8.RuneCountInString(value.Text()), value.String())
	}
	if !c.Exact {
		v.warn("state-collation", c.Name, fmt.Sprintf("the column (%s) takes several spellings for equal: rows in another spelling of a value count as being in it", p.Role), v.alter(c.Name, `TYPE text COLLATE "C"`))
	}
}

// checked is a fault where a CHECK constraint that lists the allowed values lacks
// one. Other constraints are left to the user.
func (v *verifier) checked(p claim.Column, c attribute, k check, values []claim.Value) {
	allowed, suffix, ok := listedValues(k.Definition)
	if !ok {
		return
	}
	var missing, all []string
	for _, a := range allowed {
		if values[0].Kind() == claim.TextValue {
			a = literal(claim.Text(a))
		}
		all = append(all, a)
	}
	for _, value := range values {
		if !slices.Contains(allowed, value.Column()) {
			missing = append(missing, value.String())
			all = append(all, literal(value))
		}
	}
	if len(missing) == 0 {
		return
	}
	subject := quote(c.Name)
	if k.Domain != "" {
		subject = "VALUE"
	}
	more := fmt.Sprintf("CHECK (%s IN (%s))%s", subject, strings.Join(all, ", "), suffix)
	mend := fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s, ADD CONSTRAINT %s %s", v.name, quote(k.Name), quote(k.Name), more)
	if k.Domain != "" { // takes one change a statement
		parts := []string{
			fmt.Sprintf("ALTER DOMAIN %s DROP CONSTRAINT %s", k.Domain, quote(k.Name)),
			fmt.Sprintf("ALTER DOMAIN %s ADD CONSTRAINT %s %s", k.Domain, quote(k.Name), more),
		}
		mend = strings.Join(parts, "; ")
		if v.twofold == nil {
			v.twofold = map[string][]string{}
		}
		v.twofold[mend] = parts
	}
	v.fault("check-lacks-value", c.Name, fmt.Sprintf("constraint %s on the column (%s) doesn't allow %s", quote(k.Name), p.Role, strings.Join(missing, ", ")), mend)
}

// Postgres shows "status IN ('a', 'b')" as (status = ANY (ARRAY['a'::text,
// 'b'::text])), with a cast of column and array where the column is a varchar, and
// a list of one as (status = 'a'::text).
var (
	listBegin = regexp.MustCompile(`^CHECK \(\(+(?:VALUE|[\w$]+|"[^"]+")\)?(?:::[\w ]+)? = (?:ANY \(+ARRAY\[)?`)
	listEnd   = regexp.MustCompile(`^\]?\)*(?:::[\w ]+\[\])?\)+((?: NOT VALID| NO INHERIT)*)$`)
	oneValue  = regexp.MustCompile(`^\(?(?:'((?:[^'\\]|'')*)'|(-?\d+)|\((-\d+)\))\)?(?:::[\w$ ."]+(?:\(\d+\))?)?`)
)

// listedValues reads a constraint that says nothing else than which values the
// column may have. suffix is what stands behind it.
func listedValues(definition string) (values []string, suffix string, ok bool) {
	begin := listBegin.FindString(definition)
	values, rest := literals(definition[len(begin):])
	end := listEnd.FindStringSubmatch(rest)
	if begin == "" || len(values) == 0 || end == nil {
		return nil, "", false
	}
	return values, end[1], true
}

// literals reads constants with commas between them, as far as they go.
func literals(text string) (values []string, rest string) {
	for {
		m := oneValue.FindStringSubmatch(text)
		if m == nil {
			return values, text
		}
		values = append(values, strings.ReplaceAll(m[1], "''", "'")+m[2]+m[3])
		text = text[len(m[0]):]
		if !strings.HasPrefix(text, ", ") {
			return values, text
		}
		text = text[2:]
	}
}

package pgclaim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// dueIndex looks for the indexes that serve the two halves of a sweep: pending
// rows, and those in processing.
func (v *verifier) dueIndex() {
	due, _ := v.def.Due.Source()
	var missing []claim.Value
	halves := []claim.Value{v.def.State.Pending}
	if !v.def.State.Processing.IsZero() {
		halves = append(halves, v.def.State.Processing)
	}
	for _, half := range halves {
		if !slices.ContainsFunc(v.rel.Indexes, func(i index) bool { return v.serves(i, half) }) {
			missing = append(missing, half)
		}
	}
	if len(missing) == 0 {
		return
	}
	var columns, only []string
	for _, w := range v.def.Where {
		if w.IsNull { // which an order can't begin with
			only = append(only, quote(w.Column)+" IS NULL")
		} else {
			columns = append(columns, quote(w.Column))
		}
	}
	if len(missing) == len(halves) {
		columns = append(columns, quote(v.def.State.Name))
	} else { // beside a partial index on the other half, its like
		only = append(only, fmt.Sprintf("%s = %s", quote(v.def.State.Name), literal(missing[0])))
	}
	where := ""
	if len(only) > 0 {
		where = " WHERE " + strings.Join(only, " AND ")
	}
	columns = append(columns, quote(due.Name), quote(v.def.ID.Name))
	texts := make([]string, len(missing))
	for i, half := range missing {
		texts[i] = half.String()
	}
	v.warn("due-index-missing", due.Name, fmt.Sprintf("no index finds due rows that are %s: each sweep reads the whole table", strings.Join(texts, " or ")),
		fmt.Sprintf("CREATE INDEX%s ON %s (%s)%s", v.concurrently(), v.name, strings.Join(columns, ", "), where))
}

// serves tells whether an index finds the rows whose state is half in the order
// in which they are due; Verify's comment has the rule.
func (v *verifier) serves(i index, half claim.Value) bool {
	if !i.Valid || i.Method != "btree" {
		return false
	}
	equal := map[string]claim.Value{v.def.State.Name: half}
	needed := map[string]bool{}
	for _, w := range v.def.Where {
		if w.IsNull { // in the predicate: an index on it has no order behind it
			needed[w.Column] = true
		} else {
			equal[w.Column] = w.Equals
		}
	}
	due, _ := v.def.Due.Source()
	notNull := []string{due.Name, v.def.ID.Name}
	for name := range equal {
		needed[name] = true
		notNull = append(notNull, name)
	}
	for _, term := range terms(i.Predicate) {
		if m := termNull.FindStringSubmatch(term); m != nil {
			name := strings.Trim(m[1], `"`)
			if !slices.Contains(v.def.Where, claim.Condition{Column: name, IsNull: true}) {
				return false
			}
			delete(needed, name)
			continue
		}
		name, values, ok := readTerm(term)
		switch {
		case !ok:
			return false
		case values == nil: // IS NOT NULL
			if !slices.Contains(notNull, name) {
				return false
			}
		case equal[name].IsZero() || !slices.Contains(values, equal[name].Column()):
			return false
		default:
			delete(needed, name)
		}
	}
	for _, num := range i.Keys {
		at := slices.IndexFunc(v.rel.Columns, func(c attribute) bool { return c.Num == num })
		if at < 0 {
			return false // an expression
		}
		name := v.rel.Columns[at].Name
		if name == due.Name && len(needed) == 0 {
			return true
		}
		if equal[name].IsZero() {
			return false
		}
		delete(needed, name)
	}
	return false
}

// terms splits a predicate, as Postgres shows it, at its ANDs.
func terms(predicate string) []string {
	var all []string
	depth, quoted, begin := 0, byte(0), 0
	text := unwrap(predicate)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], " AND "):
			all = append(all, unwrap(text[begin:i]))
			begin = i + len(" AND ")
		}
	}
	if text != "" {
		all = append(all, unwrap(text[begin:]))
	}
	return all
}

// unwrap takes away the parentheses around the whole of an expression.
func unwrap(text string) string {
	depth, quoted := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if depth == 0 && (i < len(text)-1 || text[0] != '(') {
			return text
		}
	}
	if text == "" {
		return ""
	}
	return text[1 : len(text)-1]
}

var (
	termNull    = regexp.MustCompile(`^("[^"]+"|[\w$]+) IS NULL$`)
	termNotNull = regexp.MustCompile(`^("[^"]+"|[\w$]+) IS NOT NULL$`)
	termTruth   = regexp.MustCompile(`^(NOT )?("[^"]+"|[\w$]+)(?: = (true|false))?$`)
	termEqual   = regexp.MustCompile(`^\(?("[^"]+"|[\w$]+)\)?(?:::[\w ]+)? = (ANY \(+ARRAY\[)?`)
	termEnd     = regexp.MustCompile(`^(?:\]\)*(?:::[\w$ ."]+\[\])?\)+)?$`)
)

// readTerm reads column = value, column IN (values) and column IS NOT NULL (nil
// values).
func readTerm(term string) (name string, values []string, ok bool) {
	if m := termNotNull.FindStringSubmatch(term); m != nil {
		return strings.Trim(m[1], `"`), nil, true
	}
	if m := termTruth.FindStringSubmatch(term); m != nil {
		truth := claim.Bool((m[1] == "") == (m[3] != "false"))
		return strings.Trim(m[2], `"`), []string{truth.Column()}, true
	}
	m := termEqual.FindStringSubmatch(term)
	if m == nil {
		return "", nil, false
	}
	values, rest := literals(term[len(m[0]):])
	list := m[2] != ""
	if len(values) == 0 || !termEnd.MatchString(rest) || list != (rest != "") || !list && len(values) > 1 {
		return "", nil, false
	}
	return strings.Trim(m[1], `"`), values, true
}

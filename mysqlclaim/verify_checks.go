package mysqlclaim

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// A list of values as the server prints it: `status` in ('a','b'), in MySQL with
// a character set before each text.
var listCheck = regexp.MustCompile("(?i)^\\(?`([^`]+)` in \\((.*?)\\)\\)?$")

var listed = regexp.MustCompile("'(?:[^']|'')*'|-?[0-9]+")

// checks judges CHECK constraints: a list of values by what it lacks, and any
// other that concerns a column which dueclaim writes is named.
func (v *verifier) checks() {
	for _, k := range v.c.checks {
		state := v.t.def.State.Name
		if m := listCheck.FindStringSubmatch(k.clause); m != nil && strings.EqualFold(m[1], state) {
			v.listed(k, m[2])
			continue
		}
		for _, col := range v.t.def.Columns() {
			if col.Written && strings.Contains(strings.ToLower(k.clause), "`"+strings.ToLower(col.Name)+"`") {
				v.advise("check", col.Name, "constraint "+k.name+" ("+k.clause+") must allow what dueclaim writes, else claims fail", "")
			}
		}
	}
}

// listed compares the values that a constraint on the state allows.
func (v *verifier) listed(k check, list string) {
	allowed := listed.FindAllString(regexp.MustCompile(`_[a-z0-9]+'`).ReplaceAllString(list, "'"), -1)
	var lacks []string
	for _, value := range v.states() {
		text := value.Column()
		if value.Kind() == claim.TextValue {
			text = quoteText(value.Text())
		}
		if !slices.Contains(allowed, text) {
			lacks = append(lacks, text)
		}
	}
	if len(lacks) == 0 {
		return
	}
	name := v.t.def.State.Name
	clause := quoteName(name) + " IN (" + strings.Join(append(allowed, lacks...), ", ") + ")"
	mend := v.t.alter("DROP CONSTRAINT "+quoteName(k.name), "ADD CONSTRAINT "+quoteName(k.name)+" CHECK ("+clause+")")
	if f := v.c.column(name); k.ofColumn && f != nil {
		to := *f
		to.check = clause
		mend = v.t.alter(to.modify())
	}
	v.fault("check-lacks-value", name, "constraint "+k.name+" doesn't allow "+strings.Join(lacks, ", "), mend)
}

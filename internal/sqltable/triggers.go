package sqltable

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// Fences are the columns that prove a grant by what a claim wrote there: nothing else
// may write them while a row is held.
func Fences(t claim.Table) []string {
	all := []string{t.Token, t.Holder, t.Lease.Name}
	if t.Mode() == claim.StatusUpdated {
		all = append(all, t.Updated.Name)
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// Touch is what a trigger's source seems to do to a column.
type Touch uint8

// The touches.
const (
	// Leaves: the source doesn't name the column.
	Leaves Touch = iota
	// Names: it names the column, and what it does can't be told: it reads it, writes it
	// in a way that isn't known here, or only where the statement itself did not (the old
	// value is compared).
	Names
	// Writes: it sets the column, whatever the statement wrote.
	Writes
)

var (
	sqlComment = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`)
	updateSet  = regexp.MustCompile(`(?is)\bUPDATE\s+(?:ONLY\s+|OR\s+\w+\s+|LOW_PRIORITY\s+|IGNORE\s+)*([^\s;]+)(?:\s+AS)?(?:\s+\w+)?\s+SET\b([^;]*)`)
	whereBegin = regexp.MustCompile(`(?i)\b(WHERE|FROM)\b`)
	quoteMarks = strings.NewReplacer("`", "", `"`, "", "[", "", "]", "")
)

// TriggerTouch reads a trigger's source, in any of the databases' languages, as far as
// it can be read: whether it assigns NEW.column (a BEFORE trigger), or runs an UPDATE of
// the table that sets the column (an AFTER trigger). table is its name without a schema.
func TriggerTouch(source, table, column string) Touch {
	source = quoteMarks.Replace(sqlComment.ReplaceAllString(source, " "))
	about := func(pattern string) *regexp.Regexp {
		return regexp.MustCompile("(?i)" + strings.ReplaceAll(pattern, "COLUMN", regexp.QuoteMeta(column)))
	}
	if !about(`\bCOLUMN\b`).MatchString(source) {
		return Leaves
	}
	if about(`\bOLD\s*\.\s*COLUMN\b`).MatchString(source) {
		return Names
	}
	assigned := about(`(?:^|;|,|\b(?:BEGIN|THEN|ELSE|LOOP|SET|INTO)\b)\s*NEW\s*\.\s*COLUMN\s*(?::?=|$|;|\bFROM\b)`)
	if assigned.MatchString(source) {
		return Writes
	}
	set := about(`(?:^|,|\()\s*(?:\w+\s*\.\s*)?COLUMN\s*(?:=|,|\))`)
	for _, m := range updateSet.FindAllStringSubmatch(source, -1) {
		target := m[1][strings.LastIndexByte(m[1], '.')+1:]
		list := m[2]
		if at := whereBegin.FindStringIndex(list); at != nil {
			list = list[:at[0]]
		}
		if strings.EqualFold(target, table) && set.MatchString(list) {
			return Writes
		}
	}
	return Names
}

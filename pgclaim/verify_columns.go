package pgclaim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dueclaim/dueclaim/claim"
)

// The types of each sort, by the name of the built-in type below all domains.
var (
	textTypes  = []string{"text", "varchar", "bpchar"}
	looseTypes = append([]string{"citext"}, textTypes...)
	intTypes   = []string{"int2", "int4", "int8"}
	timeTypes  = map[claim.TimeKind][]string{
		claim.UnixMilli: {"int8"}, claim.UnixSecond: {"int4", "int8"},
		claim.DateTime: {"timestamp"}, claim.Timestamp: {"timestamptz"},
	}
)

// maxErrorBytes is what a column of LastError must hold.
const maxErrorBytes = 4096

// columns judges each mapped column by its part.
func (v *verifier) columns() {
	for _, p := range v.def.Columns() {
		c, ok := v.rel.column(p.Name)
		if !ok {
			v.missing(p)
			continue
		}
		v.rights(p, c)
		if p.Time != nil {
			v.time(p, c)
		} else {
			v.typed(p, c)
		}
		if p.Written && (c.Generated || c.Identity) {
			v.fault("generated", c.Name, fmt.Sprintf("the column (%s) is generated and can't be written", p.Role), "map another column")
		}
		v.null(p, c)
	}
}

func (v *verifier) missing(p claim.Column) {
	reason := fmt.Sprintf("the table has no column %s (%s)", quote(p.Name), p.Role)
	for _, c := range v.rel.Columns {
		if strings.EqualFold(c.Name, p.Name) {
			reason += fmt.Sprintf("; it has %s, and names are compared exactly", quote(c.Name))
		}
	}
	mend := ""
	if add := v.added(p.Role, p.Name, p.Time); add != "" {
		mend = fmt.Sprintf("ALTER TABLE %s %s", v.name, add)
	}
	v.fault("column-missing", p.Name, reason, mend)
}

func (v *verifier) rights(p claim.Column, c attribute) {
	if !c.Select {
		v.fault("privilege", c.Name, "the role may not read the column", fmt.Sprintf("GRANT SELECT ON %s TO %s", v.name, v.catalog.Role))
	}
	if p.Written && !c.Update {
		v.fault("privilege", c.Name, "the role may not write the column", fmt.Sprintf("GRANT UPDATE ON %s TO %s", v.name, v.catalog.Role))
	}
}

// want is a fault where the column's type is none of these.
func (v *verifier) want(p claim.Column, c attribute, types []string, words, mend string) bool {
	if slices.Contains(types, c.Base) {
		return true
	}
	v.fault("column-type", c.Name, fmt.Sprintf("the column (%s) is %s; want %s", p.Role, c.Type, words), mend)
	return false
}

// room is a fault where the column holds less than n characters.
func (v *verifier) room(p claim.Column, c attribute, n int, what string) {
	if has := c.characters(); has > 0 && has < n {
		v.fault("text-too-short", c.Name, fmt.Sprintf("the column (%s) holds %d characters; %s needs %d", p.Role, has, what, n), v.alter(c.Name, "TYPE text"))
	}
}

// characters is the n of varchar(n) and char(n), 0 for no bound.
func (c attribute) characters() int {
	if (c.Base == "varchar" || c.Base == "bpchar") && c.Modifier > 4 {
		return c.Modifier - 4
	}
	return 0
}

func (v *verifier) typed(p claim.Column, c attribute) {
	switch role, _, _ := strings.Cut(p.Role, "["); role {
	case "ID":
		v.idType(p, c)
	case "State":
		s := v.def.State
		v.values(p, c, s.Pending, s.Processing, s.Done, s.Dead)
	case "Where":
		for i, w := range v.def.Where {
			if p.Role == fmt.Sprintf("Where[%d]", i) && !w.IsNull {
				v.values(p, c, w.Equals)
			}
		}
	case "Token":
		mend := ""
		if slices.Contains(intTypes, c.Base) {
			mend = v.alter(c.Name, "TYPE bigint")
		}
		v.want(p, c, []string{"int8"}, "bigint: tokens begin at the time in milliseconds", mend)
	case "Attempts", "Crashes":
		v.want(p, c, intTypes, "an integer", "")
	case "Holder":
		if v.want(p, c, textTypes, "text", "") {
			v.room(p, c, 64, "a holder")
		}
	case "LastError":
		if v.want(p, c, looseTypes, "text", "") {
			if has := c.characters(); has > 0 && has < maxErrorBytes {
				v.warn("text-too-short", c.Name, fmt.Sprintf("the column (%s) holds %d characters, and a failure's text has up to %d bytes: of longer ones only the beginning is kept, or nothing", p.Role, has, maxErrorBytes), v.alter(c.Name, "TYPE text"))
			}
		}
	case "Payload":
		v.want(p, c, append([]string{"bytea", "json", "jsonb", "enum"}, looseTypes...), "text, bytes or JSON", "")
	case "Kind":
		v.want(p, c, append([]string{"enum"}, looseTypes...), "text", "")
	}
}

func (v *verifier) idType(p claim.Column, c attribute) {
	switch v.def.ID.Kind {
	case claim.IntegerID:
		v.want(p, c, intTypes, "an integer type (ID.Kind is integer)", "")
	case claim.UUIDID:
		if v.want(p, c, append([]string{"uuid"}, looseTypes...), "uuid or text (ID.Kind is uuid)", "") {
			v.room(p, c, 36, "a uuid")
		}
	default:
		words := "text (ID.Kind is text)"
		if c.Base == "uuid" || slices.Contains(intTypes, c.Base) {
			words += ", or map ID.Kind as what it is"
		}
		v.want(p, c, looseTypes, words, "")
	}
	if !c.NotNull {
		v.fault("id-nullable", c.Name, "the id may be NULL: such a row can't be named", v.alter(c.Name, "SET NOT NULL"))
	}
	if !c.Exact {
		why := "its collation " + quote(c.Collation) + " is not deterministic"
		if c.Base == "citext" {
			why = "it is citext"
		}
		v.warn("id-collation", c.Name, "several spellings of an id match one row, as "+why+": no row is claimed by another spelling, but ids in the index must be spelled as in the row", v.alter(c.Name, `TYPE text COLLATE "C"`))
	}
	if c.Base == "bpchar" {
		v.warn("id-padded", c.Name, fmt.Sprintf("the column is %s, which pads with spaces: ids are what is before them", c.Type), v.alter(c.Name, "TYPE text"))
	}
}

// null judges what NULL means in the column, and who has to fill it. Statements
// take a NULL token, holder, count or error for 0 or "".
func (v *verifier) null(p claim.Column, c attribute) {
	if p.Role == "Lease" {
		if c.NotNull {
			v.fault("lease-not-null", c.Name, "the column (Lease) is NOT NULL, and NULL stands for no lease", v.alter(c.Name, "DROP NOT NULL"))
		}
		return
	}
	if c.NotNull {
		ours := slices.Contains([]string{"Token", "Holder", "Attempts", "Crashes", "LastError"}, p.Role)
		if ours && c.Default == nil && !c.DomainDefault && !c.Generated {
			v.warn("not-null-without-default", c.Name, fmt.Sprintf("the column (%s) is NOT NULL and has no default: your own INSERTs must fill it", p.Role), v.alter(c.Name, "SET DEFAULT "+zero(c)))
		}
		return
	}
	means := ""
	switch p.Role {
	case "State":
		means = "a row whose state is NULL is none of dueclaim's"
	case "Due.Column", "Due.Base":
		means = "a row where it is NULL is never due"
	case "Updated":
		if v.def.Mode() == claim.StatusUpdated {
			means = "a row in processing where it is NULL is left alone for ever"
		}
	}
	if means != "" {
		v.warn("nullable", c.Name, fmt.Sprintf("the column (%s) may be NULL: %s", p.Role, means), v.alter(c.Name, "SET NOT NULL"))
	}
}

// zero is a default for a column of ours.
func zero(c attribute) string {
	if slices.Contains(intTypes, c.Base) {
		return "0"
	}
	return "''"
}

// id looks for the index that makes ids unique.
func (v *verifier) id() {
	c, ok := v.rel.column(v.def.ID.Name)
	if !ok {
		return
	}
	for _, i := range v.rel.Indexes {
		if i.Unique && i.Valid && i.Predicate == "" && slices.Equal(i.Keys, []int{c.Num}) {
			return
		}
	}
	if v.rel.Kind == "p" {
		v.partitionedID(c)
		return
	}
	v.fault("id-not-unique", c.Name, "no index makes the column unique by itself, at once and for all rows: a claim may change several rows",
		fmt.Sprintf("CREATE UNIQUE INDEX%s ON %s (%s)", v.concurrently(), v.name, quote(c.Name)))
}

// partitionedID judges the ids of a partitioned table, where a unique index must have
// the columns of the partition key in it. One of these and the id alone keeps ids unique
// within a partition, and finds rows by them; that no two partitions have one id is up
// to whoever makes the ids, as a sequence or a uuid does.
func (v *verifier) partitionedID(c attribute) {
	for _, i := range v.rel.Indexes {
		only := func(num int) bool { return num == c.Num || num != 0 && slices.Contains(v.rel.PartitionKey, num) }
		if i.Unique && i.Valid && i.Predicate == "" && len(i.Keys) > 0 && i.Keys[0] == c.Num && !slices.ContainsFunc(i.Keys, func(num int) bool { return !only(num) }) {
			v.warn("id-not-unique", c.Name, "the id is unique within a partition only: two rows of one id in two partitions would be one task, claimed and settled as one",
				"make sure that ids never repeat (a sequence, uuids), or partition by hash of the id, which a unique index can then have alone")
			return
		}
	}
	v.fault("id-not-unique", c.Name, "no unique index begins with the column and has nothing else but the partition key: a claim may change several rows, and reads all partitions",
		fmt.Sprintf("CREATE UNIQUE INDEX ON %s (%s), with the columns of the partition key behind it", v.name, quote(c.Name)))
}

// concurrently: without blocking the user's writes, which a partitioned table
// can't.
func (v *verifier) concurrently() string {
	if v.rel.Kind == "p" {
		return ""
	}
	return " CONCURRENTLY"
}

package sqliteclaim

import (
	"strconv"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// idArgument is an id, which has been checked, as the column holds it.
func (t *Table) idArgument(id core.ID) any {
	switch t.def.ID.Kind {
	case claim.IntegerID:
		n, err := strconv.ParseInt(string(id), 10, 64)
		if err != nil {
			return nil // equals nothing
		}
		return n
	case claim.BinaryUUIDID:
		b, err := claim.ParseUUID(string(id))
		if err != nil {
			return nil
		}
		return b[:]
	}
	return string(id)
}

// readID is the id that a row shows; ok is false for one that no entry of an index
// can name.
func (t *Table) readID(v any) (id core.ID, ok bool) {
	switch v := v.(type) {
	case string:
		id = core.ID(v)
		if t.def.ID.Kind == claim.BinaryUUIDID && len(v) == 32 {
			id = core.ID(v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:])
		}
		ok = t.def.ID.Kind != claim.IntegerID
	case int64:
		id, ok = core.ID(strconv.FormatInt(v, 10)), t.def.ID.Kind == claim.IntegerID
	}
	return id, ok && t.def.ID.Kind.Check(id) == nil
}

package mysqlclaim

import (
	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

// id writes an id as the column has it.
func (s *statement) id(id core.ID, whole bool) {
	def := s.t.def.ID
	switch def.Kind {
	case claim.IntegerID:
		s.sql(string(id)) // it is one, in its canonical form
	case claim.BinaryUUIDID:
		b, err := claim.ParseUUID(string(id))
		if err != nil {
			s.err = err
		}
		s.hex(b[:])
	default:
		if s.uuid() {
			s.sql("CAST(")
			s.utf8(string(id))
			s.sql(" AS UUID)")
			return
		}
		if !representable(s.charset(def.Name), string(id)) {
			s.sql("NULL") // no row has it
			return
		}
		s.chars(def.Name, string(id), whole)
	}
}

// uuid tells whether the id column has MariaDB's type for them.
func (s *statement) uuid() bool {
	f := s.c.column(s.t.def.ID.Name)
	return f != nil && f.data == "uuid"
}

// spelled tells whether the id column may take several spellings for equal, so
// that the bytes have to be compared too.
func (s *statement) spelled() bool {
	f := s.c.column(s.t.def.ID.Name)
	return f != nil && f.charset != "" && (s.t.def.ID.Kind == claim.TextID || s.t.def.ID.Kind == claim.UUIDID)
}

// spelling is the row's id in its bytes.
func (s *statement) spelling() {
	name := s.t.def.ID.Name
	s.asBytes(name, func() { s.sql("t.", quoteName(name)) })
}

// ids is the condition that the row's id is one of these, in every byte.
func (s *statement) ids(ids []core.ID) {
	name := s.t.def.ID.Name
	whole := false
	for _, id := range ids {
		whole = whole || !ascii(string(id))
	}
	s.sql("t.", quoteName(name), " IN (")
	for i, id := range ids {
		if i > 0 {
			s.sql(", ")
		}
		s.id(id, whole)
	}
	s.sql(")")
	if s.spelled() {
		s.sql(" AND ")
		s.spelling()
		s.sql(" IN (")
		for i, id := range ids {
			if i > 0 {
				s.sql(", ")
			}
			s.val(string(id))
		}
		s.sql(")")
	}
}

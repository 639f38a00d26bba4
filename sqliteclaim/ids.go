package sqliteclaim

import (
	"github.com/dueclaim/dueclaim/core"
)

// idArray is a JSON array, for SQLite's json_each, of those ids that can be in the
// table. One that breaks the rules can't be there, and as JSON it might read as
// another one. What is left has no character that JSON escapes but two.
func idArray(ids []core.ID) string {
	a := make([]byte, 1, 32*len(ids)+2)
	a[0] = '['
	for _, id := range ids {
		if id.Check() != nil {
			continue
		}
		if len(a) > 1 {
			a = append(a, ',')
		}
		a = append(a, '"')
		for _, c := range []byte(id) {
			if c == '"' || c == '\\' {
				a = append(a, '\\')
			}
			a = append(a, c)
		}
		a = append(a, '"')
	}
	return string(append(a, ']'))
}

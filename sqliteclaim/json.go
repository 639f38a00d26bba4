package sqliteclaim

import (
	"fmt"
	"strconv"

	"github.com/dueclaim/dueclaim/core"
)

// array writes a JSON array; SQLite's json_each reads it. It is encoding/json
// for the three types that occur here, without its escapes for HTML.
type array []byte

func (a *array) next() {
	if len(*a) == 0 {
		*a = append(*a, '[')
	} else if (*a)[len(*a)-1] != '[' {
		*a = append(*a, ',')
	}
}

func (a *array) open()  { a.next(); *a = append(*a, '[') }
func (a *array) close() { *a = append(*a, ']') }
func (a *array) null()  { a.next(); *a = append(*a, "null"...) }

func (a *array) int(n int64) {
	a.next()
	*a = strconv.AppendInt(*a, n, 10)
}

// text appends s, which is valid UTF-8.
func (a *array) text(s string) {
	a.next()
	*a = append(*a, '"')
	start := 0
	for i := range len(s) {
		if c := s[i]; c == '"' || c == '\\' || c < ' ' {
			*a = append(*a, s[start:i]...)
			*a = fmt.Appendf(*a, `\u%04x`, c)
			start = i + 1
		}
	}
	*a = append(*a, s[start:]...)
	*a = append(*a, '"')
}

// done returns the whole array.
func (a *array) done() string {
	if len(*a) == 0 {
		return "[]"
	}
	a.close()
	return string(*a)
}

// idArray is the JSON array of those ids that can be in the table. One that
// breaks the rules can't be there, and as JSON it might read as another one.
func idArray(ids []core.ID) string {
	a := make(array, 0, 32*len(ids)+2)
	for _, id := range ids {
		if id.Check() == nil {
			a.text(string(id))
		}
	}
	return a.done()
}

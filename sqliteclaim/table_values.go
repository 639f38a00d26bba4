package sqliteclaim

import (
	"strconv"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/internal/sqltable"
)

// read makes values of what the driver gave for a row. ok is false for a row that
// no statement should see: its id is none, or one of its times is no time.
func (t *Table) read(outs []sqltable.Out, values []any) (row sqltable.Row, ok bool) {
	row = make(sqltable.Row, len(outs))
	for i, o := range outs {
		v, ok := sqltable.Val{Null: values[i] == nil}, true
		switch o.As {
		case sqltable.AsID:
			id, known := t.readID(values[i])
			v.Text, ok = string(id), known
		case sqltable.AsText:
			v.Text = asText(values[i])
		case sqltable.AsBytes:
			if b, is := values[i].([]byte); is {
				v.Bytes = b
			} else if !v.Null {
				v.Bytes = []byte(asText(values[i]))
			}
		case sqltable.AsInt:
			v.Int, _ = asInt(values[i])
		case sqltable.AsTime:
			switch {
			case v.Null:
			case o.Time.Integer():
				v.Int, ok = asInt(values[i])
			default:
				v.Int, ok = readClock(values[i], o.Time.Zone)
			}
		}
		if !ok {
			return nil, false
		}
		row[i] = v
	}
	return row, true
}

// asText is what CAST AS TEXT makes of a value.
func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// ownClock tells whether what stands behind a time leaves it the clock of the column's
// zone, by which texts are compared: nothing does, and in UTC what says so. The last
// two are how Go's drivers write a time.Time.
func ownClock(behind string, zone *time.Location) bool {
	switch behind {
	case "":
		return true
	case "Z", "+00:00", " +0000 UTC":
		return zone == time.UTC
	}
	return zone == time.UTC && strings.HasPrefix(behind, " +0000 UTC m=")
}

// readClock reads the value of a DateTime column: "2030-01-02 03:04:05.678", and
// what SQLite's functions would read as that. One with an offset shows another clock
// than the column's, and is none.
func readClock(v any, zone *time.Location) (int64, bool) {
	text, ok := v.(string)
	if !ok {
		return 0, false
	}
	const date, second = len(time.DateOnly), len(time.DateTime)
	switch {
	case len(text) == date:
		text += " 00:00:00"
	case len(text) == second-len(":05"):
		text += ":00"
	case len(text) < second:
		return 0, false
	}
	if text[date] == 'T' {
		text = text[:date] + " " + text[date+1:]
	}
	at, err := time.Parse(time.DateTime, text[:second])
	if err != nil {
		return 0, false
	}
	n, fraction := at.UnixMicro(), text[second:]
	if !ownClock(strings.TrimLeft(fraction, ".0123456789"), zone) {
		return 0, false
	}
	if len(fraction) > 1 && fraction[0] == '.' {
		digit := int64(100_000)
		for _, c := range []byte(fraction[1:]) {
			if c < '0' || c > '9' {
				break
			}
			n += int64(c-'0') * digit
			digit /= 10
		}
	}
	return n, true
}

// tableTokens are the tokens that claims on this process's tables begin with.
var tableTokens counter

package sqltable

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// A failure's text only describes. Where its column can't hold it (it is too short, has
// another character set, a CHECK, a trigger that minds), the outcome is recorded with
// less of it, at last with none: else the handler would run again as after a crash.

// cutMark ends a text of which the column can't hold more.
const cutMark = " (cut)"

// less are ways to make a text fit, the mildest first: what most columns of text hold at
// least, then what fits all that hold any text.
var less = []func(string) string{
	func(s string) string { return cut(s, 255) },
	func(s string) string { return cut(strings.Map(plain, s), 60) },
}

// cut is s, or what of it fits into n bytes with the mark.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len(cutMark)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

// plain is a printable character of ASCII: r, or a question mark.
func plain(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// record makes a change that may have a text in it, with less of it where the database
// refuses it as it is. The error is then the first one.
func (e *Engine) record(ctx context.Context, conn Conn, c Change) (Changes, error) {
	done, first := conn.Change(ctx, c)
	if first == nil || !slices.Contains(c.Fields, FieldErr) || !e.unfit(first) {
		return done, first
	}
	for _, shorter := range less {
		for i := range c.Items {
			c.Items[i].Err = shorter(c.Items[i].Err)
		}
		var err error
		if done, err = e.others(ctx, conn, c, done); err == nil || !e.unfit(err) {
			return done, err
		}
	}
	c.Fields = slices.DeleteFunc(slices.Clone(c.Fields), func(f Field) bool { return f == FieldErr })
	c.Set = slices.DeleteFunc(slices.Clone(c.Set), func(a Assign) bool { return a.Column == e.table.LastError })
	done, err := e.others(ctx, conn, c, done)
	if err != nil && e.unfit(err) {
		err = first
	}
	return done, err
}

// others makes a change for the items that an earlier try didn't reach: done says which
// it did.
func (e *Engine) others(ctx context.Context, conn Conn, c Change, done Changes) (Changes, error) {
	if !slices.Contains(done.Changed, true) {
		return conn.Change(ctx, c)
	}
	all := c.Items
	var places []int
	c.Items = nil
	for i := range all {
		if !done.Changed[i] {
			c.Items, places = append(c.Items, all[i]), append(places, i)
		}
	}
	changed := slices.Clone(done.Changed)
	more, err := conn.Change(ctx, c)
	for k, i := range places {
		if more.Changed != nil {
			changed[i] = more.Changed[k]
		}
	}
	if err == nil && more.Changed == nil { // which of these isn't known
		return Changes{}, nil
	}
	return Changes{Changed: changed}, err
}

func (e *Engine) unfit(err error) bool {
	if p, ok := errors.AsType[partial](err); ok {
		err = p.err
	}
	return e.limits.Unfit != nil && e.limits.Unfit(err)
}

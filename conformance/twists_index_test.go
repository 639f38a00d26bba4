package conformance_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/dueclaim/dueclaim/core"
)

func cut[T any](n int) func([]T) []T {
	return func(list []T) []T { return list[:min(n, len(list))] }
}

func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

func eachEntry(f func(*core.Entry)) func([]core.Entry) []core.Entry {
	return func(list []core.Entry) []core.Entry { return each(f, list) }
}

// indexTwists are the bugs of an index, by method, as storeTwists are a store's.
func indexTwists() map[string]indexTwist {
	var buffer []core.Entry // of an index that has one for all answers
	var names, taken []byte
	return map[string]indexTwist{
		"add: the first only":         {want: "contract/large-batch", added: cut[core.Entry](1)},
		"add: the last is forgotten":  {want: "contract/large-batch", added: func(list []core.Entry) []core.Entry { return list[:max(0, len(list)-1)] }},
		"add: in whole seconds":       {want: "times/exact", added: eachEntry(func(e *core.Entry) { e.Due = seconds(e.Due) })},
		"add: a millisecond late":     {want: "times/exact", added: eachEntry(func(e *core.Entry) { e.Due = e.Due.Add(time.Millisecond) })},
		"add: nothing before 1980":    {want: "times/exact", added: eachEntry(func(e *core.Entry) { e.Due = latest(e.Due, time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) })},
		"add: nothing after 2100":     {want: "times/exact", added: eachEntry(func(e *core.Entry) { e.Due = earlier(e.Due, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) })},
		"add: ids cut at 191 bytes":   {want: "ids/bytes", added: eachEntry(func(e *core.Entry) { e.ID = e.ID[:min(191, len(e.ID))] })},
		"add: ids trimmed":            {want: "ids/bytes", added: eachEntry(func(e *core.Entry) { e.ID = core.ID(strings.Trim(string(e.ID), " *?")) })},
		"move: the first only":        {want: "contract/large-batch", moved: cut[core.Move](1)},
		"move: From in whole seconds": {want: "move/compare", moved: eachMove(func(m *core.Move) { m.From = seconds(m.From) })},
		"move: To in whole seconds":   {want: "move/compare", moved: eachMove(func(m *core.Move) { m.To = seconds(m.To) })},
		"move: only earlier": {want: "move/compare", moved: func(list []core.Move) []core.Move {
			return slices.DeleteFunc(list, func(m core.Move) bool { return m.To.After(m.From) })
		}},
		"move: the other way":           {want: "move/compare", moved: eachMove(func(m *core.Move) { m.From, m.To = m.To, m.From })},
		"remove: the first only":        {want: "contract/large-batch", removed: cut[core.Entry](1)},
		"remove: in whole seconds":      {want: "remove/compare", removed: eachEntry(func(e *core.Entry) { e.Due = seconds(e.Due) })},
		"remove: does nothing":          {want: "remove/compare", removed: cut[core.Entry](0)},
		"due: a millisecond early":      {want: "times/due-boundary", now: later(time.Millisecond)},
		"due: a millisecond late":       {want: "times/due-boundary", now: later(-time.Millisecond)},
		"due: by whole seconds":         {want: "times/due-boundary", now: seconds},
		"due: by the process's clock":   {want: "times/due-boundary", now: func(time.Time) time.Time { return time.Now() }},
		"due: one more than the limit":  {want: "due/limit", limit: func(n int) int { return n + 1 }},
		"due: one fewer than the limit": {want: "due/limit", limit: func(n int) int { return max(1, n-1) }},
		"due: the latest first":         {want: "due/order", due: func(list []core.Entry) []core.Entry { slices.Reverse(list); return list }},
		"due: by id": {want: "due/order", due: func(list []core.Entry) []core.Entry {
			slices.SortFunc(list, func(a, b core.Entry) int { return cmp.Compare(a.ID, b.ID) })
			return list
		}},
		"due: in the process's zone":      {want: "times/exact", due: eachEntry(func(e *core.Entry) { e.Due = e.Due.Local() })},
		"due: in a zone called UTC":       {want: "times/exact", due: eachEntry(func(e *core.Entry) { e.Due = e.Due.In(time.FixedZone("UTC", 0)) })},
		"due: through a float of seconds": {want: "times/exact", due: eachEntry(func(e *core.Entry) { e.Due = time.UnixMilli(int64(float32(e.Due.UnixMilli()))).UTC() })},
		"due: one twice":                  {want: "due/order", due: func(list []core.Entry) []core.Entry { return append(list, list[:min(1, len(list))]...) }},
		"due: one buffer for all answers": {want: "contract/memory-is-the-callers", due: func(list []core.Entry) []core.Entry {
			buffer = append(buffer[:0], list...)
			return buffer
		}},
		"due: ids in one buffer": {want: "contract/memory-is-the-callers", due: func(list []core.Entry) []core.Entry {
			names = slices.Grow(names[:0], 1<<16)
			return eachEntry(func(e *core.Entry) { e.ID, names = unsafeID(names, e.ID) })(list)
		}},
		"take: ids in one buffer": {want: "contract/memory-is-the-callers", taken: func(ids []core.ID) []core.ID {
			taken = slices.Grow(taken[:0], 1<<16)
			return each(func(id *core.ID) { *id, taken = unsafeID(taken, *id) }, ids)
		}, due: func(list []core.Entry) []core.Entry {
			taken = slices.Grow(taken[:0], 1<<16)
			for _, e := range list {
				_, taken = unsafeID(taken, e.ID)
			}
			return list
		}},
		"take: until in whole seconds":     {want: "take/times-exact", until: seconds},
		"take: until a millisecond early":  {want: "take/moves", until: later(-time.Millisecond)},
		"take: the last is not told":       {want: "take/order-and-limit", taken: func(ids []core.ID) []core.ID { return ids[:max(0, len(ids)-1)] }},
		"take: one twice":                  {want: "take/order-and-limit", taken: func(ids []core.ID) []core.ID { return append(ids, ids[:min(1, len(ids))]...) }},
		"take: next in the process's zone": {want: "take/next", next: time.Time.Local},
		"take: next in whole seconds":      {want: "take/next", next: seconds},
		"take: next for none is 1970":      {want: "take/next", next: func(t time.Time) time.Time { return latest(t, time.UnixMilli(0).UTC()) }},
		"restore: the first only":          {want: "restore/missing", missing: cut[core.Entry](1)},
		"restore: in whole seconds":        {want: "restore/missing", missing: eachEntry(func(e *core.Entry) { e.Due = seconds(e.Due) })},
		"list: after is inclusive":         {want: "list/order-and-bounds", list: func(p *page) { p.after.ID = p.after.ID[:max(0, len(p.after.ID)-1)] }},
		"list: by time alone":              {want: "list/order-and-bounds", list: func(p *page) { p.after.ID = "" }},
		"list: the bound is inclusive":     {want: "list/order-and-bounds", list: func(p *page) { p.before = p.before.Add(time.Millisecond) }},
		"list: in whole seconds":           {want: "list/order-and-bounds", list: func(p *page) { p.before = seconds(p.before) }},
		"list: one more than the limit":    {want: "list/order-and-bounds", list: func(p *page) { p.limit++ }},
		"list: the latest first":           {want: "list/order-and-bounds", listed: func(list []core.Entry) []core.Entry { slices.Reverse(list); return list }},
		"list: in the process's zone":      {want: "list/order-and-bounds", listed: eachEntry(func(e *core.Entry) { e.Due = e.Due.Local() })},
		"list: the first page only":        {want: "list/goes-on", list: func(p *page) { p.after = core.Entry{} }},
		"generation: none":                 {want: "losses/lost", name: func(string) string { return "" }},
		"generation: another each time":    {want: "losses/stays", name: func(s string) string { return s + time.Now().String() }},
		"watch: hears nothing":             {want: "watch/new-head", notify: func(func()) func() { return func() {} }},
		"watch: ctx isn't passed on":       {want: "watch/done-ctx", ctx: context.WithoutCancel},
		"ctx: none is passed on":           {want: "contract/done-ctx", ctx: context.WithoutCancel},
		"ctx: none is passed on to a lock": {want: "hold/ctx", ctx: context.WithoutCancel},
		"ctx: its error by text alone":     {want: "contract/done-ctx", err: hideCtx},
		"error: none while it is away":     {want: "break/errors", err: func(error) error { return nil }},
	}
}

// unsafeID puts an id's bytes into buf and returns the id that lies there.
func unsafeID(buf []byte, id core.ID) (core.ID, []byte) {
	from := len(buf)
	buf = append(buf, id...)
	return core.ID(unsafe.String(&buf[from], len(id))), buf
}

package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

func asBatch(err error, batch **core.BatchError) bool { return errors.As(err, batch) }

// opaque is an error that hides what it wraps.
func opaque(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// only has f change what is answered with one verdict.
func only(v core.Verdict, f func(c *core.Claimed)) func(c *core.Claimed) {
	return func(c *core.Claimed) {
		if c.Verdict == v {
			f(c)
		}
	}
}

// settledAs has f change the settlements of one outcome.
func settledAs(o core.Outcome, f func(x *core.Settlement)) func(x *core.Settlement) {
	return func(x *core.Settlement) {
		if x.Outcome == o {
			f(x)
		}
	}
}

// itemsOf has f change the error of each failed item.
func itemsOf(f func(err error) error) func(items []core.ItemError) []core.ItemError {
	return func(items []core.ItemError) []core.ItemError {
		for i := range items {
			items[i].Err = f(items[i].Err)
		}
		return items
	}
}

// told is to for from, and any other error as it is.
func told(from, to error) func(error) error {
	return func(err error) error {
		if errors.Is(err, from) {
			return to
		}
		return err
	}
}

func later(d time.Duration) func(time.Time) time.Time {
	return func(t time.Time) time.Time { return t.Add(d) }
}

// storeTwists are the bugs by method: what guards, what is counted, which instant, in
// which order, whose memory, which context, which error, and what a repeat does. What a
// twist can't say is a bug of the naive store, in storeDoubles.
func storeTwists() map[string]twist {
	buffer := make([]byte, 0, 1<<20)   // of a store that has one for all answers
	newest := map[core.ID]core.Grant{} // of a store that forgets to compare one half of a grant, or both
	remembers := only(core.Granted, func(c *core.Claimed) { newest[c.ID] = c.Grant })
	return map[string]twist{
		// Claim: guards and instants.
		"claim: due a millisecond early":           {want: "claim/due-by", lease: func(l *core.Lease) { l.DueBy = l.DueBy.Add(time.Millisecond) }},
		"claim: due a millisecond late":            {want: "claim/due-by", lease: func(l *core.Lease) { l.DueBy = l.DueBy.Add(-time.Millisecond) }},
		"claim: DueBy never beyond Now":            {want: "claim/due-by", lease: func(l *core.Lease) { l.DueBy = earlier(l.DueBy, l.Now) }},
		"claim: taken over a second late":          {want: "claim/never-before-lease-end", lease: func(l *core.Lease) { l.Now = l.Now.Add(-time.Second) }},
		"claim: a lease of its own length":         {want: "claim/granted", lease: func(l *core.Lease) { l.Until = l.Now.Add(time.Minute) }},
		"claim: the lease ends a millisecond late": {want: "claim/never-before-lease-end", lease: func(l *core.Lease) { l.Until = l.Until.Add(time.Millisecond) }},
		"claim: the lease ends in whole seconds":   {want: "claim/granted", lease: func(l *core.Lease) { l.Until = l.Until.Truncate(time.Second) }},
		"claim: holders in lower case":             {want: "claim/granted", lease: func(l *core.Lease) { l.Holder = strings.ToUpper(l.Holder) }},
		"claim: holders trimmed to 32 bytes":       {want: "claim/holder-bytes", lease: func(l *core.Lease) { l.Holder = l.Holder[:min(32, len(l.Holder))] }},
		// Claim: answers.
		"claim: only what is granted": {want: "claim/order-of-ids", answer: func(got []core.Claimed) []core.Claimed {
			return slices.DeleteFunc(got, func(c core.Claimed) bool { return c.Verdict != core.Granted })
		}},
		"claim: each verdict twice": {want: "claim/granted", answer: func(got []core.Claimed) []core.Claimed { return append(got, got...) }},
		"claim: granted ones first": {want: "claim/order-of-ids", answer: func(got []core.Claimed) []core.Claimed {
			slices.SortStableFunc(got, func(a, b core.Claimed) int { return cmp.Compare(a.Verdict, b.Verdict) })
			return got
		}},
		"claim: the first of the batch only":      {want: "claim/order-of-ids", ids: func(ids []core.ID) []core.ID { return ids[:min(1, len(ids))] }},
		"claim: held is not due":                  {want: "claim/order-of-ids", claimed: only(core.Held, func(c *core.Claimed) { c.Verdict = core.NotDue })},
		"claim: not due is held":                  {want: "claim/order-of-ids", claimed: only(core.NotDue, func(c *core.Claimed) { c.Verdict = core.Held })},
		"claim: not due is gone":                  {want: "claim/due-by", claimed: only(core.NotDue, func(c *core.Claimed) { c.Verdict = core.Gone })},
		"claim: held is refused":                  {want: "claim/order-of-ids", claimed: only(core.Held, func(c *core.Claimed) { c.Verdict = core.Refused })},
		"claim: gone is refused":                  {want: "claim/gone", claimed: only(core.Gone, func(c *core.Claimed) { c.Verdict = core.Refused })},
		"claim: gone is held":                     {want: "claim/gone", claimed: only(core.Gone, func(c *core.Claimed) { c.Verdict = core.Held })},
		"claim: refused is gone":                  {want: "lock/claim", claimed: only(core.Refused, func(c *core.Claimed) { c.Verdict = core.Gone })},
		"claim: no verdict":                       {want: "claim/granted", claimed: func(c *core.Claimed) { c.Verdict = 0 }},
		"claim: no At of a grant":                 {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.At = time.Time{} })},
		"claim: At of a grant is its due time":    {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.At = c.Task.Due })},
		"claim: no At of a held one":              {want: "claim/order-of-ids", claimed: only(core.Held, func(c *core.Claimed) { c.At = time.Time{} })},
		"claim: no At of one not due":             {want: "claim/due-by", claimed: only(core.NotDue, func(c *core.Claimed) { c.At = time.Time{} })},
		"claim: At in the process's zone":         {want: "claim/granted", claimed: func(c *core.Claimed) { c.At = c.At.Local() }},
		"claim: At of a held one in a zone":       {want: "claim/order-of-ids", claimed: only(core.Held, func(c *core.Claimed) { c.At = c.At.Local() })},
		"claim: Task.Due in the process's zone":   {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.Task.Due = c.Task.Due.Local() })},
		"claim: Task.Due in a zone called UTC":    {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.Task.Due = c.Task.Due.In(time.FixedZone("UTC", 0)) })},
		"claim: Task.Due is the end of the lease": {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.Task.Due = c.At })},
		"claim: no Task.ID":                       {want: "claim/granted", claimed: func(c *core.Claimed) { c.Task.ID = "" }},
		"claim: no Kind":                          {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Kind = "" }},
		"claim: Kind in lower case":               {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Kind = strings.ToLower(c.Task.Kind) }},
		"claim: no Payload":                       {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Payload = nil }},
		"claim: Payload as text":                  {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Payload = []byte(strings.ToValidUTF8(string(c.Task.Payload), "?")) }},
		"claim: no Meta":                          {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Meta = nil }},
		"claim: Meta is the Payload":              {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.Meta = c.Task.Payload }},
		"claim: no MaxAttempts":                   {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.MaxAttempts = 0 }},
		"claim: MaxAttempts of 8 bits":            {want: "claim/fields", claimed: func(c *core.Claimed) { c.Task.MaxAttempts = int(int8(c.Task.MaxAttempts)) }},
		"claim: Attempt as it was before":         {want: "claim/counts", claimed: only(core.Granted, func(c *core.Claimed) { c.Attempt-- })},
		"claim: Attempt counts crashes twice":     {want: "claim/counts", claimed: func(c *core.Claimed) { c.Attempt += c.Crashes }},
		"claim: Crashes are attempts":             {want: "claim/counts", claimed: only(core.Granted, func(c *core.Claimed) { c.Crashes = c.Attempt - 1 })},
		"claim: no Crashes":                       {want: "claim/take-over", claimed: func(c *core.Claimed) { c.Crashes = 0 }},
		"claim: another's holder in the grant":    {want: "claim/granted", claimed: only(core.Granted, func(c *core.Claimed) { c.Grant.Holder += "-" })},
		"claim: no Grant.ID":                      {want: "claim/granted", claimed: func(c *core.Claimed) { c.Grant.ID = "" }},
		"claim: tokens of 32 bits":                {want: "settle/done", claimed: func(c *core.Claimed) { c.Grant.Token = int64(int32(c.Grant.Token)) }},
		"claim: tokens through a float":           {want: "token/rises", claimed: func(c *core.Claimed) { c.Grant.Token = int64(float32(c.Grant.Token)) }},
		"claim: one array for all payloads":       {want: "contract/memory-is-the-callers", answer: oneArray},
		"claim: one buffer for all answers": {want: "contract/memory-is-the-callers", answer: func(got []core.Claimed) []core.Claimed {
			buffer = buffer[:0]
			for i := range got {
				from := len(buffer)
				buffer = append(buffer, got[i].Task.Payload...)
				got[i].Task.Payload = buffer[from:len(buffer):len(buffer)]
			}
			return got
		}},
		// Extend.
		"extend: a millisecond less":         {want: "extend/moves-end", until: later(-time.Millisecond)},
		"extend: in whole seconds":           {want: "extend/moves-end", until: func(t time.Time) time.Time { return t.Truncate(time.Second) }},
		"extend: a lost lease is busy":       {want: "extend/lost", items: itemsOf(told(core.ErrLeaseLost, core.ErrBusy))},
		"extend: a busy row is lost":         {want: "lock/extend", items: itemsOf(told(core.ErrBusy, core.ErrLeaseLost))},
		"extend: by the newest token of any": {want: "extend/lost", grant: func(g *core.Grant) { g.Token++ }},
		// Settle.
		"settle: without the token":              {want: "token/both-count", claimed: remembers, settled: func(x *core.Settlement) { x.Grant.Token = newest[x.Grant.ID].Token }},
		"settle: without token and holder":       {want: "settle/older-refused", claimed: remembers, settled: func(x *core.Settlement) { x.Grant = cmp.Or(newest[x.Grant.ID], x.Grant) }},
		"settle: done is dead":                   {want: "purge/what", settled: settledAs(core.Done, func(x *core.Settlement) { x.Outcome = core.DeadLetter })},
		"settle: dead is done":                   {want: "purge/what", settled: settledAs(core.DeadLetter, func(x *core.Settlement) { x.Outcome = core.Done })},
		"settle: retry is released":              {want: "settle/retry", settled: settledAs(core.Retry, func(x *core.Settlement) { x.Outcome = core.Released })},
		"settle: released is retried":            {want: "settle/released", settled: settledAs(core.Released, func(x *core.Settlement) { x.Outcome = core.Retry })},
		"settle: retry in whole seconds":         {want: "settle/retry", settled: settledAs(core.Retry, func(x *core.Settlement) { x.Due = x.Due.Truncate(time.Second) })},
		"settle: released at once":               {want: "settle/released", settled: settledAs(core.Released, func(x *core.Settlement) { x.Due = x.Due.Add(-time.Millisecond) })},
		"settle: finished now, by another clock": {want: "purge/before", settledNow: later(time.Millisecond)},
		"settle: lost leases pass":               {want: "settle/older-refused", err: func(err error) error { return unlessIs(err, core.ErrLeaseLost) }},
		"settle: lost is busy":                   {want: "settle/older-refused", items: itemsOf(told(core.ErrLeaseLost, core.ErrBusy))},
		"settle: busy is lost":                   {want: "lock/settle", items: itemsOf(told(core.ErrBusy, core.ErrLeaseLost))},
		// Errors of any method.
		"error: of the whole call for an item's": {want: "extend/lost", err: func(err error) error { return flat(err) }},
		"error: items without their ids":         {want: "extend/lost", items: func(items []core.ItemError) []core.ItemError { return noIDs(items) }},
		"error: items counted from one":          {want: "extend/lost", items: func(items []core.ItemError) []core.ItemError { return shifted(items) }},
		"error: the last item first":             {want: "reschedule/mixed-batch", items: func(items []core.ItemError) []core.ItemError { slices.Reverse(items); return items }},
		"error: the first item only":             {want: "reschedule/mixed-batch", items: func(items []core.ItemError) []core.ItemError { return items[:1] }},
		"error: sentinels by text alone":         {want: "extend/lost", items: itemsOf(opaque)},
		"error: ctx's by text alone":             {want: "contract/done-ctx", err: hideCtx},
		"error: ctx's by text alone, of a Store": {want: "contract/done-ctx-store", err: hideCtx},
		"ctx: none is passed on":                 {want: "contract/done-ctx", ctx: context.WithoutCancel},
		"ctx: none is passed on by a Store":      {want: "contract/done-ctx-store", ctx: context.WithoutCancel},
		"ctx: none is passed on, to a lock":      {want: "hold/claims", ctx: context.WithoutCancel},
		// Waiting.
		"waiting: by id": {want: "waiting/order", waiting: func(list []core.Entry) []core.Entry {
			slices.SortFunc(list, func(a, b core.Entry) int { return cmp.Compare(a.ID, b.ID) })
			return list
		}},
		"waiting: the latest first":          {want: "waiting/order", waiting: func(list []core.Entry) []core.Entry { slices.Reverse(list); return list }},
		"waiting: ties without case":         {want: "waiting/order", waiting: noCase},
		"waiting: in a zone":                 {want: "waiting/order", waiting: func(list []core.Entry) []core.Entry { return each(func(e *core.Entry) { e.Due = e.Due.Local() }, list) }},
		"waiting: one fewer":                 {want: "waiting/pages", waiting: func(list []core.Entry) []core.Entry { return list[:max(0, len(list)-1)] }},
		"waiting: one twice":                 {want: "waiting/order", waiting: func(list []core.Entry) []core.Entry { return append(list, list[:min(1, len(list))]...) }},
		"waiting: any limit":                 {want: "waiting/pages", page: func(p *page) { p.limit *= 2 }},
		"waiting: half the limit":            {want: "waiting/limit-counts-returned", page: func(p *page) { p.limit = max(1, p.limit/2) }},
		"waiting: after is inclusive":        {want: "waiting/strictly-after", page: func(p *page) { p.after.ID = p.after.ID[:max(0, len(p.after.ID)-1)] }},
		"waiting: from the start each time":  {want: "waiting/pages", page: func(p *page) { p.after = core.Entry{} }},
		"waiting: after by time alone":       {want: "waiting/pages", page: func(p *page) { p.after.ID = "" }},
		"waiting: no bound":                  {want: "waiting/before-is-exclusive", page: func(p *page) { p.before = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"waiting: bounds in whole seconds":   {want: "waiting/bounds-exact", page: func(p *page) { p.before = p.before.Truncate(time.Second) }},
		"waiting: held until a second later": {want: "waiting/lapsed", page: func(p *page) { p.now = p.now.Add(-time.Second) }},
		// Insert.
		"insert: the first only":                      {want: "contract/large-batch-store", tasks: func(list []core.Task) []core.Task { return list[:min(1, len(list))] }},
		"insert: the last is forgotten":               {want: "contract/large-batch-store", tasks: func(list []core.Task) []core.Task { return list[:max(0, len(list)-1)] }},
		"insert: due in whole seconds":                {want: "insert/pending", tasks: eachTask(func(x *core.Task) { x.Due = x.Due.Truncate(time.Second) })},
		"insert: due at once where it is past":        {want: "insert/pending", tasks: eachTask(func(x *core.Task) { x.Due = x.Due.Add(-time.Millisecond) })},
		"insert: due by the process's clock":          {want: "times/exact", tasks: eachTask(func(x *core.Task) { x.Due = latest(x.Due, time.Now().UTC()) })},
		"insert: MaxAttempts at least 1":              {want: "claim/fields", tasks: eachTask(func(x *core.Task) { x.MaxAttempts = max(1, x.MaxAttempts) })},
		"insert: each call is its own":                {want: "insert/repeat-live", call: func(c *core.Call) { c.ID += fmt.Sprint(time.Now().UnixNano()) }},
		"insert: calls are known by their first byte": {want: "insert/exists", call: func(c *core.Call) { c.ID = c.ID[:1] }},
		"insert: live is a success":                   {want: "insert/exists", err: func(err error) error { return unlessIs(err, core.ErrExists) }},
		"insert: live is busy":                        {want: "insert/exists", items: itemsOf(told(core.ErrExists, core.ErrBusy))},
		// Cancel.
		"cancel: fates sorted":                     {want: "cancel/fates", fates: func(f []core.Fate) []core.Fate { slices.Sort(f); return f }},
		"cancel: one fate for all":                 {want: "cancel/fates", fates: func(f []core.Fate) []core.Fate { return f[:min(1, len(f))] }},
		"cancel: was running is cancelled":         {want: "cancel/fates", fates: fate(core.WasRunning, core.Cancelled)},
		"cancel: cancelled was running":            {want: "cancel/fates", fates: fate(core.Cancelled, core.WasRunning)},
		"cancel: finished is unknown":              {want: "cancel/fates", fates: fate(core.Finished, core.Unknown)},
		"cancel: unknown is finished":              {want: "cancel/fates", fates: fate(core.Unknown, core.Finished)},
		"cancel: finished is cancelled":            {want: "cancel/fates", fates: fate(core.Finished, core.Cancelled)},
		"cancel: a lease ends a millisecond early": {want: "cancel/lease-boundary", cancelNow: later(time.Millisecond)},
		"cancel: a lease ends a millisecond late":  {want: "cancel/lease-boundary", cancelNow: later(-time.Millisecond)},
		"cancel: the first only":                   {want: "contract/large-batch-store", cancelled: func(ids []core.ID) []core.ID { return ids[:min(1, len(ids))] }},
		// Reschedule.
		"reschedule: moved is not pending":     {want: "reschedule/moved", items: itemsOf(told(core.ErrMoved, core.ErrNotPending))},
		"reschedule: not pending is moved":     {want: "reschedule/not-pending", items: itemsOf(told(core.ErrNotPending, core.ErrMoved))},
		"reschedule: not pending is a success": {want: "reschedule/not-pending", err: func(err error) error { return unlessIs(err, core.ErrNotPending) }},
		"reschedule: only later": {want: "reschedule/sets-due", moves: func(m []core.Move) []core.Move {
			return slices.DeleteFunc(m, func(m core.Move) bool { return m.To.Before(m.From) })
		}},
		"reschedule: only earlier": {want: "reschedule/sets-due", moves: func(m []core.Move) []core.Move {
			return slices.DeleteFunc(m, func(m core.Move) bool { return m.To.After(m.From) })
		}},
		"reschedule: From is always asked for": {want: "reschedule/any-from", moves: eachMove(func(m *core.Move) { m.From = latest(m.From, time.UnixMilli(0).UTC()) })},
		"reschedule: in whole seconds":         {want: "reschedule/times-exact", moves: eachMove(func(m *core.Move) { m.To = m.To.Truncate(time.Second) })},
		// Purge and Now.
		"purge: one more than the limit":      {want: "purge/limit", purged: func(_ *time.Time, limit *int) { *limit++ }},
		"purge: says the limit":               {want: "purge/limit", count: func(n int) int { return n + 1 }},
		"purge: says nothing":                 {want: "purge/limit", count: func(int) int { return 0 }},
		"purge: by whole seconds":             {want: "purge/before", purged: func(before *time.Time, _ *int) { *before = before.Truncate(time.Second) }},
		"purge: all that is finished":         {want: "purge/before", purged: func(before *time.Time, _ *int) { *before = before.Add(time.Hour) }},
		"now: in the process's zone":          {want: "clock/shared", now: time.Time.Local},
		"now: of seconds":                     {want: "clock/shared", now: func(t time.Time) time.Time { return t.Truncate(time.Second) }},
		"now: since the start of the process": {want: "clock/shared", now: func(time.Time) time.Time { return time.UnixMilli(0).UTC() }},
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// oneArray has the payloads of an answer lie one behind the other in one array.
func oneArray(got []core.Claimed) []core.Claimed {
	var all [][]byte
	for _, c := range got {
		all = append(all, c.Task.Payload)
	}
	array := bytes.Join(all, nil)
	for i := range got {
		n := len(got[i].Task.Payload)
		got[i].Task.Payload, array = array[:n], array[n:]
	}
	return got
}

func unlessIs(err, sentinel error) error {
	if errors.Is(err, sentinel) {
		return nil
	}
	return err
}

// flat is an error of the whole call for one of a batch.
func flat(err error) error {
	var batch *core.BatchError
	if errors.As(err, &batch) {
		return batch.Items[0].Err
	}
	return err
}

func noIDs(items []core.ItemError) []core.ItemError {
	return each(func(x *core.ItemError) { x.ID = "" }, items)
}

func shifted(items []core.ItemError) []core.ItemError {
	return each(func(x *core.ItemError) { x.Index++ }, items)
}

func hideCtx(err error) error {
	if errors.Is(err, context.Canceled) {
		return opaque(err)
	}
	return err
}

func noCase(list []core.Entry) []core.Entry {
	slices.SortStableFunc(list, func(a, b core.Entry) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(strings.ToLower(string(a.ID)), strings.ToLower(string(b.ID))))
	})
	return list
}

func eachTask(f func(*core.Task)) func([]core.Task) []core.Task {
	return func(list []core.Task) []core.Task { return each(f, list) }
}

func eachMove(f func(*core.Move)) func([]core.Move) []core.Move {
	return func(list []core.Move) []core.Move { return each(f, list) }
}

func fate(from, to core.Fate) func([]core.Fate) []core.Fate {
	return func(list []core.Fate) []core.Fate {
		for i := range list {
			if list[i] == from {
				list[i] = to
			}
		}
		return list
	}
}

package pgclaim

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// Strange but legal: quotes, backslashes, braces and commas, as they stand in
// array literals; "NULL"; non-ASCII in two compositions.
var strange = []core.ID{
	`q'uo"te`, `back\slash`, `{a,b}`, `NULL`, "e\u0301", "\u00e9", "日本", `$1`, "a b", `--`, `''`, "A", "a",
}

func TestEveryStepWorksInEveryQueryExecMode(t *testing.T) {
	eachMode(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		ctx := t.Context()
		require.NoError(t, s.Migrate(ctx), "again")

		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		var in []core.Task
		for i, id := range strange {
			in = append(in, core.Task{ID: id, Kind: `k'"\`, Payload: all, Meta: []byte{0, byte(i)}, Due: at(i), MaxAttempts: i})
		}
		require.NoError(t, s.Insert(ctx, call("c1"), in))
		require.NoError(t, s.Insert(ctx, call("c1"), in), "a repeat")
		err := s.Insert(ctx, call("c2"), in[:2])
		require.ErrorIs(t, err, core.ErrExists)

		waiting, err := s.Waiting(ctx, at(0), core.Entry{}, at(100), 100)
		require.NoError(t, err)
		require.Len(t, waiting, len(strange))
		rest, err := s.Waiting(ctx, at(0), waiting[3], at(9), 3)
		require.NoError(t, err)
		assert.Equal(t, waiting[4:7], rest)

		l := lease("h1", 5)
		claimed, err := s.Claim(ctx, append([]core.ID{"none"}, strange...), l)
		require.NoError(t, err)
		assert.Equal(t, core.Claimed{ID: "none", Verdict: core.Gone}, claimed[0])
		for i, c := range claimed[1:] {
			if i > 5 {
				assert.Equal(t, core.Claimed{ID: strange[i], Verdict: core.NotDue, At: at(i)}, c)
				continue
			}
			assert.Equal(t, core.Claimed{
				ID: strange[i], Verdict: core.Granted, At: l.Until, Attempt: 1,
				Grant: core.Grant{ID: strange[i], Token: c.Grant.Token, Holder: "h1"}, Task: in[i], NotBefore: at(i),
			}, c)
			assert.WithinDuration(t, time.Now(), time.UnixMicro(c.Grant.Token), time.Minute, "the first token is the server's time")
		}
		again, err := s.Claim(ctx, append([]core.ID{"none"}, strange...), l)
		require.NoError(t, err)
		assert.Equal(t, claimed, again, "a repeat finds what the first call was granted")
		other, err := s.Claim(ctx, strange[:1], lease("h2", 6))
		require.NoError(t, err)
		assert.Equal(t, []core.Claimed{{ID: strange[0], Verdict: core.Held, At: l.Until}}, other)

		grants := []core.Grant{claimed[1].Grant, claimed[2].Grant, claimed[3].Grant, claimed[4].Grant, claimed[5].Grant}
		lost := core.Grant{ID: strange[5], Token: 1, Holder: "h1"}
		err = s.Extend(ctx, append(grants, lost), at(60))
		requireItems(t, err, map[int]error{5: core.ErrLeaseLost})
		require.NoError(t, s.Extend(ctx, grants, at(60)), "a repeat is no loss")
		require.NoError(t, s.Extend(ctx, grants, at(20)), "never shorter")
		assert.Equal(t, []string{"5"}, s.text(t, `SELECT count(*)::text FROM dueclaim_tasks WHERE lease_until = $1::bigint`, at(60).UnixMilli()))

		settlements := []core.Settlement{
			{Grant: grants[0], Outcome: core.Done},
			{Grant: grants[1], Outcome: core.Retry, Due: at(200), Err: `it's "bad"\`},
			{Grant: grants[2], Outcome: core.Released, Due: at(300)},
			{Grant: grants[3], Outcome: core.DeadLetter, Err: "gave up"},
			{Grant: lost, Outcome: core.Done},
		}
		for range 2 {
			requireItems(t, s.Settle(ctx, at(7), settlements), map[int]error{4: core.ErrLeaseLost})
		}
		rows := s.text(t, `SELECT concat_ws(' ', status, due - $1::bigint, planned - $1::bigint, attempts, lease_until, finished_at - $1::bigint, last_error)
			FROM dueclaim_tasks WHERE id = ANY ($2::text[]) ORDER BY planned, due`, base.UnixMilli(), []string{"q'uo\"te", `back\slash`, `{a,b}`, `NULL`})
		assert.Equal(t, []string{
			`done 0 1 0 7000 `, `pending 300000 2000 0 0 `, `dead 3000 1 0 7000 gave up`, `pending 200000 200000 1 0 it's "bad"\`,
		}, rows)

		fates, err := s.Cancel(ctx, core.Call{Now: at(8)}, []core.ID{strange[0], strange[1], strange[4], "none", "A"})
		require.NoError(t, err)
		want := []core.Fate{core.Finished, core.Cancelled, core.WasRunning, core.Unknown, core.Cancelled}
		assert.Equal(t, want, fates)
		fates, err = s.Cancel(ctx, core.Call{Now: at(9)}, []core.ID{strange[0], strange[1], strange[4], "none", "A"})
		require.NoError(t, err)
		assert.Equal(t, want, fates, "a repeat")

		moves := []core.Move{
			{ID: strange[2], From: at(300), To: at(400)},
			{ID: strange[6], From: at(1), To: at(400)},
			{ID: strange[7], To: at(400)},
			{ID: "A", To: at(400)},
			{ID: "none", To: at(400)},
		}
		for range 2 {
			requireItems(t, s.Reschedule(ctx, core.Call{Now: at(9)}, moves), map[int]error{1: core.ErrMoved, 3: core.ErrNotPending, 4: core.ErrNotPending})
		}

		n, err := s.Purge(ctx, at(8), 10)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		n, err = s.Purge(ctx, at(100), 2)
		require.NoError(t, err)
		assert.Equal(t, 2, n)

		now, err := s.Now(ctx)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now(), now, time.Minute)
	})
}

func TestLargePayloadsComeBack(t *testing.T) {
	modes := allModes
	if !stress() {
		modes = binaryAndText
	}
	eachModeOf(t, modes, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		in := make([]core.Task, 3)
		ids := make([]core.ID, len(in))
		for i := range in {
			in[i] = task(string(rune('a'+i)), 0)
			in[i].Payload = bytes.Repeat([]byte{byte(i), 0, '\\', '\''}, core.MaxPayloadBytes/4)
			in[i].Meta = []byte{}
			ids[i] = in[i].ID
		}
		require.NoError(t, s.Insert(t.Context(), call("c"), in))
		claimed, err := s.Claim(t.Context(), ids, lease("h", 1))
		require.NoError(t, err)
		for i, c := range claimed {
			require.True(t, bytes.Equal(in[i].Payload, c.Task.Payload), "payload %d", i)
		}
	})
}

// requireItems wants a *core.BatchError with exactly these failures.
func requireItems(t testing.TB, err error, want map[int]error) {
	t.Helper()
	if len(want) == 0 {
		require.NoError(t, err)
		return
	}
	batch, ok := errors.AsType[*core.BatchError](err)
	require.True(t, ok, "want a *core.BatchError, got %v", err)
	require.Len(t, batch.Items, len(want), "%v", err)
	last := -1
	for _, item := range batch.Items {
		require.Greater(t, item.Index, last, "ordered by Index")
		last = item.Index
		require.ErrorIs(t, item.Err, want[item.Index], "item %d", item.Index)
	}
}

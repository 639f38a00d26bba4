package claim

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/dueclaim/dueclaim/core"
)

func ms(seconds int) int64 { return at(seconds).UnixMilli() }

func TestRowClaimedSaysWhyARowWasNotGranted(t *testing.T) {
	l := core.Lease{Holder: "mine", Now: at(10), DueBy: at(12), Until: at(40)}
	for name, c := range map[string]struct {
		row  Row
		want core.Verdict
		at   time.Time
	}{
		"mine":                       {Row{Status: Running, Holder: "mine", LeaseUntil: ms(40)}, core.Granted, at(40)},
		"mine, ended":                {Row{Status: Running, Holder: "mine", LeaseUntil: ms(5)}, core.Granted, at(5)},
		"another's":                  {Row{Status: Running, Holder: "x", LeaseUntil: ms(20)}, core.Held, at(20)},
		"another's, to the last ms":  {Row{Status: Running, Holder: "x", LeaseUntil: ms(10)}, core.Held, at(10)},
		"another's, ended":           {Row{Status: Running, Holder: "x", LeaseUntil: ms(10) - 1}, core.Refused, time.Time{}},
		"another's, ended, due late": {Row{Status: Running, Holder: "x", LeaseUntil: ms(9), Due: ms(13)}, core.NotDue, at(13)},
		"due later":                  {Row{Status: Pending, Due: ms(12) + 1}, core.NotDue, at(12).Add(time.Millisecond)},
		"due":                        {Row{Status: Pending, Due: ms(12)}, core.Refused, time.Time{}},
		"pending, mine before":       {Row{Status: Pending, Due: ms(13), Holder: "mine"}, core.NotDue, at(13)},
		"done":                       {Row{Status: DoneState, Holder: "mine"}, core.Gone, time.Time{}},
		"dead":                       {Row{Status: DeadState}, core.Gone, time.Time{}},
		"cancelled":                  {Row{Status: Cancelled, LeaseUntil: ms(40)}, core.Gone, time.Time{}},
	} {
		c.row.ID = "a"
		got := c.row.Claimed(l)
		assert.Equal(t, c.want.String(), got.Verdict.String(), name)
		assert.Equal(t, c.at, got.At, name)
		assert.EqualValues(t, "a", got.ID)
		if c.want != core.Granted {
			assert.Equal(t, core.Claimed{ID: "a", Verdict: c.want, At: c.at}, got, "%s: nothing of another's task", name)
		}
	}
	full := Row{ID: "a", Status: Running, Due: ms(2), Planned: ms(3), Token: 7, Holder: "mine", LeaseUntil: ms(40), Attempts: 4, Crashes: 2, MaxAttempts: 9, Kind: "k", Payload: []byte("p"), Meta: []byte("m"), CallID: "c"}
	assert.Equal(t, core.Claimed{
		ID: "a", Verdict: core.Granted, At: at(40), NotBefore: at(2), Grant: core.Grant{ID: "a", Token: 7, Holder: "mine"},
		Task:    core.Task{ID: "a", Kind: "k", Payload: []byte("p"), Meta: []byte("m"), Due: at(3), MaxAttempts: 9},
		Attempt: 4, Crashes: 2,
	}, full.Claimed(l))
	assert.Equal(t, core.Claimed{ID: "x", Verdict: core.Gone}, Gone("x"))
}

func TestRowSaysWhatAGrantIsStillGoodFor(t *testing.T) {
	g := core.Grant{ID: "a", Token: 7, Holder: "h"}
	for name, c := range map[string]struct {
		row              Row
		extended, settle error
	}{
		"held, lease shorter":  {Row{Status: Running, Token: 7, Holder: "h", LeaseUntil: ms(4)}, core.ErrBusy, core.ErrBusy},
		"held, lease as asked": {Row{Status: Running, Token: 7, Holder: "h", LeaseUntil: ms(5)}, nil, core.ErrBusy},
		"held, lease longer":   {Row{Status: Running, Token: 7, Holder: "h", LeaseUntil: ms(6)}, nil, core.ErrBusy},
		"a newer token":        {Row{Status: Running, Token: 8, Holder: "h", LeaseUntil: ms(9)}, core.ErrLeaseLost, core.ErrLeaseLost},
		"another holder":       {Row{Status: Running, Token: 7, Holder: "x", LeaseUntil: ms(9)}, core.ErrLeaseLost, core.ErrLeaseLost},
		"done by this holder":  {Row{Status: DoneState, Token: 7, Holder: "h"}, core.ErrLeaseLost, nil},
		"dead by this holder":  {Row{Status: DeadState, Token: 7, Holder: "h"}, core.ErrLeaseLost, nil},
		"given back by it":     {Row{Status: Pending, Token: 7, Holder: "h"}, core.ErrLeaseLost, nil},
		"done by another":      {Row{Status: DoneState, Token: 8, Holder: "x"}, core.ErrLeaseLost, core.ErrLeaseLost},
		"cancelled":            {Row{Status: Cancelled, Token: 7, Holder: "h", LeaseUntil: ms(9)}, core.ErrLeaseLost, core.ErrLeaseLost},
		"no row":               {Row{}, core.ErrLeaseLost, core.ErrLeaseLost},
	} {
		assert.Equal(t, c.extended, c.row.Extended(g, at(5)), "extended: %s", name)
		assert.Equal(t, c.settle, c.row.Settled(g), "settled: %s", name)
		assert.Equal(t, cmp.Or(c.settle, core.ErrLeaseLost), c.row.SettledTx(g), "in a user's transaction: %s", name)
	}
}

func TestRowInsertedCancelledRescheduled(t *testing.T) {
	own, other := core.Call{ID: "own"}, core.Call{ID: "other"}
	for status, live := range map[Status]bool{Pending: true, Running: true, DoneState: false, DeadState: false, Cancelled: false} {
		row := Row{Status: status, CallID: "own", Due: ms(1)}
		assert.Equal(t, live, status.Live())
		assert.NoError(t, row.Inserted(own), "%s: a repeat", status)
		want := core.ErrBusy
		if live {
			want = core.ErrExists
		}
		assert.Equal(t, want, row.Inserted(other), status)

		fate, ok := row.Fate()
		assert.Equal(t, !live, ok, status)
		if ok && status != Cancelled {
			assert.Equal(t, core.Finished, fate, status)
		}
		if status != Pending {
			assert.Equal(t, core.ErrNotPending, row.Rescheduled(core.Move{To: at(1)}), status)
		}
	}
	fate, ok := Row{Status: Cancelled}.Fate()
	assert.True(t, ok)
	assert.Equal(t, core.Cancelled, fate)
	fate, ok = Row{Status: Cancelled, LeaseUntil: 1}.Fate()
	assert.True(t, ok)
	assert.Equal(t, core.WasRunning, fate)

	row := Row{Status: Pending, Due: ms(1)}
	assert.NoError(t, row.Rescheduled(core.Move{From: at(0), To: at(1)}), "is there already")
	assert.Equal(t, core.ErrMoved, row.Rescheduled(core.Move{From: at(0), To: at(2)}))
	assert.Equal(t, core.ErrBusy, row.Rescheduled(core.Move{From: at(1), To: at(2)}))
	assert.Equal(t, core.ErrBusy, row.Rescheduled(core.Move{To: at(2)}))
}

func TestTimeIsUTC(t *testing.T) {
	assert.Equal(t, noon, Time(noon.UnixMilli()))
	assert.Equal(t, time.UTC, Time(0).Location())
}

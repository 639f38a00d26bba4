package mysqlclaim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// connections are what users put into a DSN, each of which once broke a claim
// protocol somewhere. isolation stands for the variable that is named
// transaction_isolation on MySQL and on newer MariaDB, tx_isolation before.
var connections = []string{
	"",
	"interpolateParams=true",
	"clientFoundRows=true",
	"clientFoundRows=true&interpolateParams=true",
	"parseTime=true&loc=Asia%2FShanghai",
	"parseTime=true&loc=America%2FNew_York&time_zone=%27%2B05%3A30%27",
	"charset=latin1",
	"charset=latin1&interpolateParams=true",
	"charset=utf8mb4&collation=utf8mb4_unicode_ci",
	"charset=gbk",
	"multiStatements=true&interpolateParams=true",
	"sql_mode=%27%27",
	"sql_mode=%27ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES%27",
	"isolation=READ-COMMITTED",
	"isolation=REPEATABLE-READ",
	"isolation=SERIALIZABLE",
}

// options returns a connection's options as this server spells them.
func (b backend) options(connection string) string {
	variable := map[string]string{"store:mariadb": "tx_isolation", "store:mysql": "transaction_isolation"}[b.name]
	var all []string
	for option := range strings.SplitSeq(connection, "&") {
		if level, ok := strings.CutPrefix(option, "isolation="); ok {
			option = fmt.Sprintf("%s=%%27%s%%27", variable, level)
		}
		if value, ok := strings.CutPrefix(option, "readonly="); ok {
			option = strings.TrimSuffix(variable, "isolation") + "read_only=" + value
		}
		all = append(all, option)
	}
	return strings.Join(all, "&")
}

func TestEveryConnectionOptionIsAllowed(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		dsn := b.database(t)
		for _, connection := range connections {
			t.Run(connection, func(t *testing.T) {
				s := newStore(t, open(t, dsn, b.options(connection)), Options{Queue: "q:" + connection})
				wholeLife(t, s)
			})
		}
	})
}

// wholeLife takes tasks through every transition and checks what is read back
// to the byte.
func wholeLife(t *testing.T, s *Store) {
	ctx := t.Context()
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	list := []core.Task{
		{ID: "done", Kind: "größe", Payload: binary, Meta: binary, Due: base, MaxAttempts: 3},
		{ID: "it's", Kind: `a\b`, Payload: []byte(`{"k": "it's \\ ? -- /* "}`), Due: base},
		{ID: "日本😀", Due: base},
		{ID: "DONE", Due: at(1)},
		{ID: "later", Due: at(5000)},
	}
	call := callNamed("the call")
	require.NoError(t, s.Insert(ctx, call, list))
	require.NoError(t, s.Insert(ctx, call, list), "a repeat")
	other := call
	other.ID = "another"
	require.ErrorIs(t, s.Insert(ctx, other, list[1:2]), core.ErrExists)

	var first int64 // what the server's clock was
	require.NoError(t, s.db.QueryRowContext(ctx, "SELECT token FROM "+s.quoted+" WHERE queue = "+new(text).val(s.queue).String()+" AND id = 'done'").Scan(&first))
	lease := leaseOf("holder", at(1))
	for range 2 { // the second is a repeat
		got, err := s.Claim(ctx, idsOf(list), lease)
		require.NoError(t, err)
		for i, c := range got[:4] {
			want := list[i]
			require.Equal(t, core.Granted, c.Verdict, "%s is %s", c.ID, c.Verdict)
			assert.Equal(t, want.ID, c.Task.ID)
			assert.Equal(t, want.Kind, c.Task.Kind)
			assert.True(t, bytes.Equal(want.Payload, c.Task.Payload), "payload of %s is %q", c.ID, c.Task.Payload)
			assert.True(t, bytes.Equal(want.Meta, c.Task.Meta), "meta of %s is %q", c.ID, c.Task.Meta)
			assert.Equal(t, want.Due, c.Task.Due)
			assert.Equal(t, core.Grant{ID: want.ID, Token: first + 1, Holder: "holder"}, c.Grant)
			assert.Equal(t, 1, c.Attempt)
		}
		assert.Equal(t, core.NotDue, got[4].Verdict)
		assert.Equal(t, at(5000), got[4].At)
	}
	g := func(id core.ID) core.Grant { return core.Grant{ID: id, Token: first + 1, Holder: "holder"} }

	for range 2 {
		require.NoError(t, s.Extend(ctx, []core.Grant{g("done"), g("it's")}, at(60_000)))
	}
	settlements := []core.Settlement{
		{Grant: g("done"), Outcome: core.Done},
		{Grant: g("it's"), Outcome: core.Retry, Due: at(20), Err: `größe 😀 it's \`},
		{Grant: g("日本😀"), Outcome: core.DeadLetter, Err: "no"},
		{Grant: g("DONE"), Outcome: core.Released, Due: at(10)},
	}
	for range 2 {
		require.NoError(t, s.Settle(ctx, at(2), settlements))
	}
	var lastError string
	require.NoError(t, s.db.QueryRowContext(ctx, "SELECT last_error FROM "+s.quoted+" WHERE queue = "+new(text).val(s.queue).String()+
		" AND id = "+new(text).val("it's").String()).Scan(&lastError))
	assert.Equal(t, `größe 😀 it's \`, lastError)

	waiting, err := s.Waiting(ctx, at(3), core.Entry{}, at(6000), 10)
	require.NoError(t, err)
	assert.Equal(t, []core.Entry{{ID: "DONE", Due: at(10)}, {ID: "it's", Due: at(20)}, {ID: "later", Due: at(5000)}}, waiting)

	move := []core.Move{{ID: "later", From: at(5000), To: at(7000)}, {ID: "it's", To: at(30)}}
	for range 2 {
		require.NoError(t, s.Reschedule(ctx, core.Call{Now: at(3)}, move))
	}
	for range 2 {
		fates, err := s.Cancel(ctx, core.Call{Now: at(4)}, []core.ID{"later", "unknown", "done"})
		require.NoError(t, err)
		assert.Equal(t, []core.Fate{core.Cancelled, core.Unknown, core.Finished}, fates)
	}
	replaced := core.Task{ID: "日本😀", Kind: "again", Payload: binary, Due: at(8)}
	for range 2 {
		require.NoError(t, s.Insert(ctx, other, []core.Task{replaced}))
	}
	c := grant(t, s, leaseOf("h2", at(8)), replaced.ID)[0]
	assert.Greater(t, c.Grant.Token, first+2, "the token goes on from the dead task's")
	assert.True(t, bytes.Equal(binary, c.Task.Payload), "payload of the replacement is %q", c.Task.Payload)

	n, err := s.Purge(ctx, at(4), 10)
	require.NoError(t, err)
	assert.Equal(t, 1, n, "done is purged; cancelled was finished just then")
}

package parts

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
)

func TestPlaceholdersFitTheDatabase(t *testing.T) {
	const text = "UPDATE t SET a = ? WHERE b = ? AND c = ?"
	assert.Equal(t, text, (&Parts{}).SQL(text))
	assert.Equal(t, "UPDATE t SET a = $1 WHERE b = $2 AND c = $3", (&Parts{dollar: true}).SQL(text))
}

func TestMySQLURLBecomesTheDriversForm(t *testing.T) {
	c, err := mysqlConfig("mysql://us%40er:p%2Fw%3A@db.example/shop?tls=skip-verify&interpolateParams=true")
	require.NoError(t, err)
	assert.Equal(t, "us@er", c.User)
	assert.Equal(t, "p/w:", c.Passwd)
	assert.Equal(t, "db.example:3306", c.Addr)
	assert.Equal(t, "shop", c.DBName)
	assert.Equal(t, "skip-verify", c.TLSConfig)
	assert.True(t, c.InterpolateParams)
	_, err = mysqlConfig("mysql://user:secret@db/shop?tls=%zz&x=secret")
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secret")
}

func TestAChoiceForPeopleHasNoUserAndPassword(t *testing.T) {
	c := Choice{Index: "redis://:secret@127.0.0.1:6379/0", Store: "postgres://user:secret@db/shop?password=secret"}
	require.NoError(t, c.Check())
	assert.Equal(t, "index redis://127.0.0.1:6379/0, store postgres://db/shop", c.String())
}

func TestCountsAndCleanSeeOneQueueOnly(t *testing.T) {
	t.Attr("dueclaim.backend", "pair:heap+sqlite")
	ctx := t.Context()
	mine := Choice{Index: "heap", Store: "sqlite", Table: "tasks", Queue: "mine"}.WithFile(t.TempDir())
	other := mine
	other.Queue = "other"
	p, err := Open(ctx, mine)
	require.NoError(t, err)
	defer p.Close()
	q, err := Open(ctx, other)
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, p.Store.Migrate(ctx))
	now := time.Now()
	for _, x := range []*Parts{p, q} {
		prod, err := core.NewProducer(x.Index, x.Store, core.ProducerOptions{})
		require.NoError(t, err)
		require.NoError(t, prod.Schedule(ctx, core.Task{ID: "a", Due: now}, core.Task{ID: "b", Due: now}))
	}
	granted, err := p.Store.Claim(ctx, []core.ID{"a"}, core.Lease{Holder: "worker-1.x", Now: now, DueBy: now.Add(time.Second), Until: now.Add(time.Minute)})
	require.NoError(t, err)
	require.Equal(t, core.Granted, granted[0].Verdict)

	counts, err := p.Counts(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[claim.Status]int{claim.Pending: 1, claim.Running: 1}, counts)
	for worker, want := range map[string]int{"worker-1": 1, "worker": 0, "worker-2": 0} {
		n, err := p.RunningOf(ctx, worker)
		require.NoError(t, err)
		assert.Equal(t, want, n, worker)
	}

	refused := errors.New("changed my mind")
	err = p.InTx(ctx, func(tx *sql.Tx) error {
		require.NoError(t, p.Store.InsertTx(ctx, tx, core.Call{ID: "c", Now: now}, []core.Task{{ID: "c", Due: now}}))
		return refused
	})
	require.ErrorIs(t, err, refused)

	require.NoError(t, p.Clean(ctx))
	counts, err = p.Counts(ctx)
	require.NoError(t, err)
	assert.Empty(t, counts)
	left, err := p.Index.Due(ctx, now.Add(time.Hour), 10)
	require.NoError(t, err)
	assert.Empty(t, left)
	counts, err = q.Counts(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[claim.Status]int{claim.Pending: 2}, counts)
}

func TestAWrongChoiceShowsNoPassword(t *testing.T) {
	for _, c := range []Choice{
		{Index: "heap", Store: "u:s3cret@tcp(127.0.0.1:3306)/db"},
		{Index: "heap", Store: "root:s3cret@/db"},
		{Index: "default:s3cret@127.0.0.1:6379", Store: "sqlite"},
		{Index: "heap", Store: "mysql://u:s3cret@/db"},
		{Index: "heap", Store: "oracle://u:s3cret@host/db"},
		{Index: "heap", Store: "postgres://u:s3cret@host:5432"},
		{Index: "heap", Store: "postgres://u:s3cret%zz@host:5432/db"},
	} {
		err := c.Check()
		require.Error(t, err, c.Store)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

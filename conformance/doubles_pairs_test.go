package conformance_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/conformance/sqlmocked"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/heapindex"
	"github.com/dueclaim/dueclaim/mysqlclaim"
	"github.com/dueclaim/dueclaim/pgclaim"
	"github.com/dueclaim/dueclaim/redisindex"
)

// present is the made-up present of the scripted task, which is due ten seconds
// later.
var (
	present = time.UnixMilli(1893553445678).UTC()
	due     = present.Add(10 * time.Second)
)

// scripted is the task of the scripts.
func scripted() core.Task {
	return core.Task{ID: "order-17", Kind: "mail", Payload: []byte("to a"), Due: due, MaxAttempts: 7}
}

var doubleIndexes = map[string]func(t *testing.T) core.TimeIndex{
	"heap": func(*testing.T) core.TimeIndex { return heapindex.New() },
	"miniredis": func(t *testing.T) core.TimeIndex {
		client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = client.Close() })
		idx, err := redisindex.New(client, redisindex.Options{Queue: rand.Text()})
		require.NoError(t, err)
		return idx
	},
}

// doubleStore is a store on sqlmock and the script of one task's life.
type doubleStore struct {
	open   func(db *sql.DB) (core.Store, error)
	script []conformance.SQLStep
}

var doubleStores = map[string]doubleStore{
	"mysql": {
		open:   func(db *sql.DB) (core.Store, error) { return mysqlclaim.New(db, mysqlclaim.Options{}) },
		script: lifeOnMySQL,
	},
	"postgres": {
		open:   func(db *sql.DB) (core.Store, error) { return pgclaim.NewSQL(db, pgclaim.Options{}) },
		script: lifeOnPostgres,
	},
}

// One task from Add to Remove on each pair of doubles: stored, indexed, not run
// before it is due, claimed, run, settled, removed, with no statement too many.
func TestOneTaskOnEachPairOfDoubles(t *testing.T) {
	for index, newIndex := range doubleIndexes {
		for store, double := range doubleStores {
			t.Run(index+"+"+store, func(t *testing.T) {
				t.Attr("dueclaim.double", index+"+"+store+" on sqlmock")
				play := sqlmocked.Play(t, double.script)
				st, err := double.open(play.DB())
				require.NoError(t, err)
				live(t, newIndex(t), st)
				assert.NoError(t, play.Err())
				assert.Zero(t, play.DB().Stats().InUse, "connections in use in the end")
			})
		}
	}
}

// live takes the task through its life.
func live(t *testing.T, idx core.TimeIndex, store core.Store) {
	entries := func() []core.Entry {
		all, err := idx.Due(t.Context(), due.AddDate(1000, 0, 0), 10)
		require.NoError(t, err)
		return all
	}
	p, err := core.NewProducer(idx, store, core.ProducerOptions{})
	require.NoError(t, err)
	// Schedule under a call of our own, so that the store's clock isn't asked, which
	// on a busy machine happens more than once.
	require.NoError(t, p.ScheduleCall(t.Context(), core.Call{ID: "call-1", Now: present}, scripted()))
	assert.Equal(t, []core.Entry{{ID: "order-17", Due: due}}, entries(), "the index after Schedule")

	var ran []core.Task
	s, err := core.New(idx, store, core.HandlerFunc(func(_ context.Context, job *core.Job) error {
		ran = append(ran, job.Task)
		assert.Equal(t, 1, job.Attempt)
		assert.EqualValues(t, 42, job.Grant.Token)
		return nil
	}), core.Options{})
	require.NoError(t, err)

	n, err := s.Tick(t.Context(), present)
	require.NoError(t, err)
	assert.Zero(t, n, "tasks that run before they are due")
	assert.Empty(t, ran)

	n, err = s.Tick(t.Context(), due)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, []core.Task{scripted()}, ran)
	assert.Empty(t, entries(), "the index in the end")
}

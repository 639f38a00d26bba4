package pgclaim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

func TestTxMethodsWorkInEveryModeAlsoAsTheFirstCallOfAStore(t *testing.T) {
	eachMode(t, func(t *testing.T, d driver) {
		made := d.migrated(t, Options{})
		s := made
		if made.db != nil {
			var err error
			s, err = NewSQL(made.db, Options{})
			require.NoError(t, err)
		}
		tx := s.begin(t, t.Context())
		require.NoError(t, tx.insert(t.Context(), call("c"), task("a", 0), task("b", 0)))
		require.NoError(t, tx.commit(t.Context()))
		grant := s.claimOne(t, "a", lease("h", 1)).Grant
		tx = s.begin(t, t.Context())
		require.NoError(t, tx.settle(t.Context(), at(1), core.Settlement{Grant: grant, Outcome: core.Done}))
		require.ErrorIs(t, tx.settle(t.Context(), at(1), core.Settlement{Grant: grant, Outcome: core.Done}), core.ErrLeaseLost, "a repeat")
		require.NoError(t, tx.commit(t.Context()))
		assert.Equal(t, []string{"done", "pending"}, s.text(t, "SELECT status FROM dueclaim_tasks ORDER BY id"))
	})
}

func TestInsertTxLivesAndDiesWithTheTransaction(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		tx := s.begin(t, t.Context())
		require.NoError(t, tx.insert(t.Context(), call("c"), task("a", 0)))
		tx.rollback()
		assert.Empty(t, s.text(t, "SELECT id FROM dueclaim_tasks"))
	})
}

func TestARefusedItemDoesNotAbortTheTransaction(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		ctx := t.Context()
		require.NoError(t, s.Insert(ctx, call("before"), []core.Task{task("live", 0), task("running", 0)}))
		grant := s.claimOne(t, "running", lease("h", 0)).Grant

		tx := s.begin(t, ctx)
		bad, early := task("nul\x00", 0), task("early", 0)
		early.Due = time.Time{}
		exact := task("rounded", 0)
		exact.Due = at(0).Add(time.Nanosecond)
		err := tx.insert(ctx, call("c"), task("new", 0), bad, task("live", 0), early, task("new", 1), exact)
		requireItems(t, err, map[int]error{1: core.ErrInvalid, 2: core.ErrExists, 3: core.ErrInvalid, 4: core.ErrInvalid})
		stale := grant
		stale.Token--
		requireItems(t, tx.settle(ctx, at(1), core.Settlement{Grant: stale, Outcome: core.Done}), map[int]error{0: core.ErrLeaseLost})
		err = tx.settle(ctx, at(1),
			core.Settlement{Grant: grant, Outcome: core.Retry},
			core.Settlement{Grant: core.Grant{ID: "x", Token: 1, Holder: "nul\x00"}, Outcome: core.Done},
			core.Settlement{Grant: grant, Outcome: core.Done},
			core.Settlement{Grant: grant, Outcome: core.Done},
			core.Settlement{Grant: core.Grant{ID: "y", Token: 1, Holder: "h"}},
		)
		requireItems(t, err, map[int]error{0: core.ErrInvalid, 1: core.ErrInvalid, 3: core.ErrInvalid, 4: core.ErrInvalid})
		require.NoError(t, tx.commit(ctx))
		assert.Equal(t, []string{"live pending 0", "new pending 0", "rounded pending 1", "running done"},
			s.text(t, `SELECT concat_ws(' ', id, status, due - $1::bigint) FROM dueclaim_tasks ORDER BY id`, base.UnixMilli()))
	})
}

func TestSettleTxStoresAnyErrorText(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
	grant := s.claimOne(t, "a", lease("h", 0)).Grant
	tx := s.begin(t, t.Context())
	text := "nul \x00, bad \xff, " + strings.Repeat("é", core.MaxErrorBytes)
	require.NoError(t, tx.settle(t.Context(), at(1), core.Settlement{Grant: grant, Outcome: core.DeadLetter, Err: text}))
	require.NoError(t, tx.commit(t.Context()))
	stored := s.text(t, "SELECT last_error FROM dueclaim_tasks")[0]
	assert.LessOrEqual(t, len(stored), core.MaxErrorBytes)
	assert.True(t, strings.HasPrefix(stored, "nul \uFFFD, bad \uFFFD, éé"), stored[:40])
}

func TestInsertTxLeavesLiveRowsUnlocked(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		ctx := t.Context()
		require.NoError(t, s.Insert(ctx, call("before"), []core.Task{task("a", 0)}))
		grant := s.claimOne(t, "a", lease("h", 0)).Grant
		tx := s.begin(t, ctx)
		require.ErrorIs(t, tx.insert(ctx, call("c"), task("a", 0)), core.ErrExists)
		require.NoError(t, s.Extend(ctx, []core.Grant{grant}, at(60)), "its heartbeat goes on while the transaction is open")
	})
}

func TestInsertWaitsForAnUncommittedInsertOnlyAsLongAsCtx(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		tx := s.begin(t, t.Context())
		require.NoError(t, tx.insert(t.Context(), call("c1"), task("a", 0)))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := s.Insert(ctx, call("c2"), []core.Task{task("a", 0)})
		require.Error(t, err)
		assert.Less(t, time.Since(start), 10*time.Second)
		require.NoError(t, tx.commit(t.Context()))
		require.ErrorIs(t, s.Insert(t.Context(), call("c2"), []core.Task{task("a", 0)}), core.ErrExists)
		require.NoError(t, s.Insert(t.Context(), call("c1"), []core.Task{task("a", 0)}), "a repeat of the call in the transaction")
	})
}

// A settle that waited sees what the heartbeat it waited for wrote.
func TestSettleTxWaitsForALockedRow(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		ctx := t.Context()
		require.NoError(t, s.Insert(ctx, call("c"), []core.Task{task("a", 0)}))
		grant := s.claimOne(t, "a", lease("h", 0)).Grant
		done := core.Settlement{Grant: grant, Outcome: core.Done}

		heartbeat := s.begin(t, ctx)
		require.NoError(t, heartbeat.exec(ctx, "UPDATE dueclaim_tasks SET lease_until = lease_until + 1 WHERE id = $1::text", "a"))
		require.ErrorIs(t, s.Settle(ctx, at(1), []core.Settlement{done}), core.ErrBusy, "outside of a transaction it doesn't wait")
		settled := make(chan error, 1)
		tx := s.begin(t, ctx)
		go func() { settled <- tx.settle(ctx, at(1), done) }()
		waiting := func() bool {
			return len(s.text(t, "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")) > 0
		}
		require.Eventually(t, waiting, 10*time.Second, 20*time.Millisecond)
		require.NoError(t, heartbeat.commit(ctx))
		require.NoError(t, <-settled)
		require.NoError(t, tx.commit(ctx))
		assert.Equal(t, []string{"done"}, s.text(t, "SELECT status FROM dueclaim_tasks"))
	})
}

func TestACallWithoutIdIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.migrated(t, Options{})
	for _, c := range []core.Call{{Now: base}, {ID: strings.Repeat("x", 65), Now: base}, {ID: "é", Now: base}, {ID: "x"}} {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			require.ErrorIs(t, s.InsertTx(t.Context(), tx, c, []core.Task{task("a", 0)}), core.ErrInvalid)
			return nil
		})
		require.NoError(t, err)
	}
	assert.Empty(t, s.text(t, "SELECT id FROM dueclaim_tasks"))
}

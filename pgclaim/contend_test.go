package pgclaim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// The stricter levels fail with 40001 instead of a verdict; a repeat under the
// same holder, as core does it, must come to the same end.
func TestEachTaskHasOneWinnerUnderEachIsolationLevel(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for _, d := range []driver{native, standard} {
			d.session = map[string]string{"default_transaction_isolation": level}
			t.Run(d.name()+", "+level, func(t *testing.T) {
				t.Attr("dueclaim.backend", d.backend())
				url := testserver.Postgres(t)
				handles := make([]*Store, 4)
				for i := range handles {
					handles[i] = d.open(t, url, Options{})
				}
				require.NoError(t, handles[0].Migrate(t.Context()))
				in, ids := tasks(400)
				require.NoError(t, handles[0].Insert(t.Context(), call("c"), in))
				winners := make([]atomic.Int32, len(ids))
				var wg sync.WaitGroup
				var conflicts atomic.Int32
				for w := range 8 {
					wg.Go(func() {
						s := handles[w%len(handles)]
						rng := rand.New(rand.NewPCG(1, uint64(w)))
						for round, first := range rng.Perm(len(ids) / 20) {
							mine := rng.Perm(len(ids))[:20]
							if round%2 == 0 {
								for i := range mine {
									mine[i] = first*20 + i
								}
							}
							batch := make([]core.ID, len(mine))
							for i, n := range mine {
								batch[i] = ids[n]
							}
							l := lease(fmt.Sprintf("w%d-%d", w, round), 0)
							claimed, err := s.Claim(t.Context(), batch, l)
							for isSerialization(err) {
								conflicts.Add(1)
								claimed, err = s.Claim(t.Context(), batch, l)
							}
							if !assert.NoError(t, err) {
								return
							}
							for i, c := range claimed {
								switch c.Verdict {
								case core.Granted:
									winners[mine[i]].Add(1)
								case core.Held, core.Refused:
								default:
									assert.Fail(t, "verdict", "%v", c)
								}
							}
						}
					})
				}
				wg.Wait()
				// What the contenders refused one another is there for a quiet claim.
				claimed, err := handles[0].Claim(t.Context(), ids, lease("last", 0))
				require.NoError(t, err)
				for i, c := range claimed {
					if c.Verdict == core.Granted {
						winners[i].Add(1)
					}
					require.Equal(t, int32(1), winners[i].Load(), "winners of %s", ids[i])
				}
				if level == "read committed" {
					assert.Zero(t, conflicts.Load())
				}
			})
		}
	}
}

func isSerialization(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "40001"
}

// The writing half starts from the snapshot; the locking half has seen the newest
// version. A row that changes in between is still settled, extended or claimed.
func TestHeartbeatsAndSettlesOfOneHolderDoNotRefuseEachOther(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		in, ids := tasks(50)
		require.NoError(t, s.Insert(t.Context(), call("c"), in))
		claimed, err := s.Claim(t.Context(), ids, lease("h", 0))
		require.NoError(t, err)
		grants := make([]core.Grant, len(claimed))
		for i, c := range claimed {
			grants[i] = c.Grant
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 50 {
					err := s.Extend(t.Context(), grants, at(100+4*i+w))
					if errors.Is(err, core.ErrLeaseLost) {
						assert.Fail(t, "lost", "%v", err)
						return
					}
					if err != nil && !errors.Is(err, core.ErrBusy) {
						assert.NoError(t, err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Extend(t.Context(), grants, at(100)), "all still held")
		assert.Equal(t, []string{"50"}, s.text(t, "SELECT count(*)::text FROM dueclaim_tasks WHERE lease_until >= $1::bigint", at(100+4*49).UnixMilli()))
	})
}

func TestQueuesInOneTableDoNotSeeEachOther(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		one, two := d.open(t, url, Options{Queue: "one"}), d.open(t, url, Options{Queue: "one's"})
		require.NoError(t, one.Migrate(t.Context()))
		for _, s := range []*Store{one, two} {
			require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		}
		s1, s2 := one.claimOne(t, "a", lease("h", 0)), two.claimOne(t, "a", lease("h", 0))
		require.NoError(t, one.Settle(t.Context(), at(1), []core.Settlement{{Grant: s1.Grant, Outcome: core.Done}}))
		require.NoError(t, two.Extend(t.Context(), []core.Grant{s2.Grant}, at(50)))
		waiting, err := two.Waiting(t.Context(), at(90), core.Entry{}, at(100), 10)
		require.NoError(t, err)
		assert.Equal(t, []core.Entry{{ID: "a", Due: at(0)}}, waiting)
		n, err := two.Purge(t.Context(), at(100), 10)
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

func TestATriggerThatForbidsAChangeIsRefused(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0), task("b", 0)}))
		s.exec(t, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
		s.exec(t, `CREATE TRIGGER no BEFORE UPDATE ON dueclaim_tasks FOR EACH ROW WHEN (old.id = 'a') EXECUTE FUNCTION no()`)
		claimed, err := s.Claim(t.Context(), []core.ID{"a", "b"}, lease("h", 0))
		require.NoError(t, err)
		assert.Equal(t, core.Claimed{ID: "a", Verdict: core.Refused}, claimed[0])
		assert.Equal(t, core.Granted, claimed[1].Verdict)
	})
}

func TestBatchesBeyondOneStatement(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		in, ids := tasks(2*chunkRows + 1)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(ids), func(i, j int) {
			ids[i], ids[j], in[i], in[j] = ids[j], ids[i], in[j], in[i]
		})
		require.NoError(t, s.Insert(t.Context(), call("c1"), in[:3]))
		err := s.Insert(t.Context(), call("c2"), in)
		requireItems(t, err, map[int]error{0: core.ErrExists, 1: core.ErrExists, 2: core.ErrExists})
		claimed, err := s.Claim(t.Context(), ids, lease("h", 0))
		require.NoError(t, err)
		settlements := make([]core.Settlement, len(ids))
		for i, c := range claimed {
			require.Equal(t, ids[i], c.ID)
			require.Equal(t, core.Granted, c.Verdict)
			settlements[i] = core.Settlement{Grant: c.Grant, Outcome: core.Done}
		}
		require.NoError(t, s.Settle(t.Context(), at(1), settlements))
		fates, err := s.Cancel(t.Context(), core.Call{Now: at(2)}, ids)
		require.NoError(t, err)
		for _, f := range fates {
			require.Equal(t, core.Finished, f)
		}
	})
}

package pgclaim

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// pooled is the store behind pgbouncer in transaction mode, by either driver.
const pooled = "store:postgres (pgbouncer)"

func TestStoreBehindATransactionPoolerKeepsTheContract(t *testing.T) {
	t.Attr("dueclaim.backend", pooled)
	testContract(t, testserver.PgBouncer(t, testserver.Postgres(t)), contract{driver: native, variant: true, pooled: true})
}

// More clients than the pooler has server connections, so that the statements of
// one client meet many of them.
func TestBehindATransactionPooler(t *testing.T) {
	t.Attr("dueclaim.backend", pooled)
	url := testserver.PgBouncer(t, testserver.Postgres(t))
	for _, d := range []driver{
		native, standard, // what a newcomer has
		{native: true, mode: pgx.QueryExecModeCacheDescribe},
		{native: true, mode: pgx.QueryExecModeExec}, {mode: pgx.QueryExecModeExec},
		{native: true, mode: pgx.QueryExecModeSimpleProtocol}, {mode: pgx.QueryExecModeSimpleProtocol},
	} {
		t.Run(d.name(), func(t *testing.T) {
			t.Attr("dueclaim.backend", d.backend())
			o := Options{Queue: d.name()}
			s := d.open(t, url, o)
			require.NoError(t, s.Migrate(t.Context()))
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					for i := range 10 {
						id := core.ID(fmt.Sprintf("%d-%d", w, i))
						if !assert.NoError(t, s.Insert(t.Context(), call(string(id)), []core.Task{task(string(id), 0)})) {
							return
						}
						claimed, err := s.Claim(t.Context(), []core.ID{id, "none"}, lease(string(id), 0))
						if !assert.NoError(t, err) || !assert.Equal(t, core.Granted, claimed[0].Verdict) {
							return
						}
						assert.NoError(t, s.Extend(t.Context(), []core.Grant{claimed[0].Grant}, at(60)))
						settlement := core.Settlement{Grant: claimed[0].Grant, Outcome: core.Done}
						assert.NoError(t, s.Settle(t.Context(), at(1), []core.Settlement{settlement}))
						assert.NoError(t, s.Settle(t.Context(), at(1), []core.Settlement{settlement}))
						_, err = s.Waiting(t.Context(), at(0), core.Entry{}, at(1), 5)
						assert.NoError(t, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

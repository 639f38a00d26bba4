package pgclaim

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// On a table whose partition key a claim changes, each claim moves its row to another
// partition. Workers that meet the row on its way lose: no id has two holders.
func TestAPartitionedTableHasOneHolderForEachID(t *testing.T) {
	t.Attr("dueclaim.backend", native.backend())
	s := native.open(t, testserver.Postgres(t), Options{})
	const columns = "order_id varchar(50), status text NOT NULL, created_at timestamp NOT NULL, updated_at timestamp, "
	partitions := map[string]string{
		"by_status": columns + "PRIMARY KEY (order_id, status)) PARTITION BY LIST (status); " +
			"CREATE TABLE {t}_new PARTITION OF {t} FOR VALUES IN ('pending'); CREATE TABLE {t}_busy PARTITION OF {t} FOR VALUES IN ('processing'); CREATE TABLE {t}_rest PARTITION OF {t} DEFAULT",
		"by_time": columns + "PRIMARY KEY (order_id, created_at)) PARTITION BY RANGE (created_at); " +
			"CREATE TABLE {t}_old PARTITION OF {t} FOR VALUES FROM (MINVALUE) TO ('2020-01-01'); CREATE TABLE {t}_new PARTITION OF {t} DEFAULT",
	}
	const ids, workers = 60, 6
	for name, ddl := range partitions {
		for _, mode := range []claim.Mode{claim.StatusUpdated, claim.Full} {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				def := orders(fmt.Sprintf("%s_%d", name, mode), mode)
				for statement := range strings.SplitSeq(strings.ReplaceAll("CREATE TABLE {t} ("+ddl, "{t}", def.Name), "; ") {
					s.exec(t, statement)
				}
				if mode == claim.Full {
					s.exec(t, strings.ReplaceAll(fullSQL, "{t}", def.Name))
				}
				s.exec(t, fmt.Sprintf("INSERT INTO %s (order_id, status, created_at) SELECT to_char(n, 'FM000'), 'pending', '2019-01-01'::timestamp + n * interval '10 days' FROM generate_series(1, %d) AS n", def.Name, ids))
				table := s.onTable(t, def)
				var all []core.ID
				for n := range ids {
					all = append(all, core.ID(fmt.Sprintf("%03d", n+1)))
				}
				var mu sync.Mutex
				holders := map[core.ID][]core.Claimed{}
				var group sync.WaitGroup
				now := time.Now()
				for w := range workers {
					group.Go(func() {
						lease := core.Lease{Holder: fmt.Sprint("w", w), Now: now, DueBy: now, Until: now.Add(30 * time.Second)}
						for try := 0; ; try++ {
							claimed, err := table.Claim(t.Context(), all, lease)
							if err != nil && try < 100 { // it met a row on its way: as if the reply were lost
								continue
							}
							if !assert.NoError(t, err) {
								return
							}
							mu.Lock()
							defer mu.Unlock()
							for _, c := range claimed {
								if c.Verdict == core.Granted {
									holders[c.ID] = append(holders[c.ID], c)
								}
							}
							return
						}
					})
				}
				group.Wait()
				for id, list := range holders {
					require.Len(t, list, 1, "holders of %s", id)
					require.NoError(t, table.Settle(t.Context(), now, []core.Settlement{{Grant: list[0].Grant, Outcome: core.Done}}))
				}
				assert.Equal(t, []string{fmt.Sprint(ids)}, s.text(t, "SELECT count(*)::text FROM "+def.Name), "no row is lost on its way")
				assert.Equal(t, []string{fmt.Sprint(len(holders))}, s.text(t, "SELECT count(*)::text FROM "+def.Name+" WHERE status = 'cancelled'"))
				assert.NotEmpty(t, holders)
				fs, err := table.Verify(t.Context())
				require.NoError(t, err)
				assert.Less(t, fs.Worst(), claim.Fault, fs.String())
			})
		}
	}
}

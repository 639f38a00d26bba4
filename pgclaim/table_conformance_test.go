package pgclaim

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// Postgres's own types for times.
var (
	withZone    = claim.TimeColumn{Kind: claim.Timestamp, Digits: 3}
	withoutZone = claim.TimeColumn{Kind: claim.DateTime, Digits: 3, Zone: time.UTC}
)

// shops are a user's tables in one database, one for each case of the suite.
type shops struct {
	config tabletest.Config
	// id and state are the types of these columns.
	id, state string
	driver    driver
	url       string
	by        line.Line
	first     *Store // for the user's own statements
	count     atomic.Int64
}

func newShops(t *testing.T, d driver, url string, c tabletest.Config, id, state string) *shops {
	x := &shops{config: c, id: id, state: state, driver: d, url: url}
	x.first = d.openBy(t, url, Options{}, &x.by)
	x.first.exec(t, "DO $$ BEGIN CREATE TYPE shop_state AS ENUM ('pending', 'processing', 'completed', 'given up', 'paid'); EXCEPTION WHEN duplicate_object THEN END $$")
	return x
}

// fresh makes a table.
func (x *shops) fresh(t *testing.T) *Table {
	name := fmt.Sprintf("orders%d", x.count.Add(1))
	def := x.config.Table(name, "shop")
	due, _ := def.Due.Source()
	fill := strings.NewReplacer("{t}", name, "{id}", x.id, "{state}", x.state, "{due}", due.Name, "{time}", map[claim.TimeKind]string{
		claim.UnixMilli: "bigint", claim.DateTime: "timestamp(" + fmt.Sprint(x.config.Time().Digits) + ")", claim.Timestamp: "timestamptz(" + fmt.Sprint(x.config.Time().Digits) + ")",
	}[x.config.Time().Kind]).Replace
	x.first.exec(t, fill(`CREATE TABLE {t} (
		order_id {id} PRIMARY KEY, shop text NOT NULL, status {state} NOT NULL, created_at {time}, due_at {time}, kind text, payload bytea,
		token bigint, holder text, lease_until {time}, attempts integer, crashes smallint, last_error text, updated_at {time}, deleted_at text) WITH (fillfactor = 70)`))
	x.first.exec(t, fill(`CREATE INDEX ON {t} (shop, status, {due}, order_id)`))
	return x.first.onTable(t, def)
}

// put is the user's INSERT.
func (x *shops) put(t *testing.T, table *Table, shop string, tasks []core.Task) {
	const rows = 5000
	for len(tasks) > 0 {
		n := min(len(tasks), rows)
		texts := make([][]string, 6)
		payloads := make([][]byte, 0, n)
		for _, task := range tasks[:n] {
			row := x.config.Row(task, shop, func(c claim.TimeColumn, value int64) any {
				if c.Integer() {
					return fmt.Sprint(value)
				}
				return instant(c, value)
			})
			for i := range texts {
				texts[i] = append(texts[i], row[i].(string))
			}
			payloads = append(payloads, task.Payload)
		}
		x.first.exec(t, strings.NewReplacer("{t}", table.name, "{columns}", strings.Join(tabletest.Columns(), ", "), "{state}", x.state, "{id}", x.id, "{time}", timeType(x.config.Time())).Replace(
			`INSERT INTO {t} ({columns}) SELECT a::{id}, b, c::{state}, d, e, f, g
			   FROM unnest($1::text[], $2::text[], $3::text[], $4::{time}[], $5::{time}[], $6::text[], $7::bytea[]) AS u(a, b, c, d, e, f, g)`),
			texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], payloads)
		tasks = tasks[n:]
	}
}

func (x *shops) run(t *testing.T) {
	conformance.TestClaimer(t, conformance.Claimer{
		New: func(t *testing.T) core.Claimer { return x.fresh(t) },
		Peer: func(t *testing.T, first core.Claimer) core.Claimer {
			return x.driver.open(t, x.url, Options{}).onTable(t, first.(*Table).def)
		},
		Put: func(t *testing.T, c core.Claimer, tasks []core.Task) { x.put(t, c.(*Table), "shop", tasks) },
		Lock: func(t *testing.T, c core.Claimer, id core.ID) func() {
			tx := x.first.begin(t, context.WithoutCancel(t.Context()))
			require.NoError(t, tx.exec(t.Context(), "SELECT 1 FROM "+c.(*Table).name+" WHERE order_id = $1 FOR UPDATE", string(id)))
			return tx.rollback
		},
		Break: func(t *testing.T, _ core.Claimer) func() {
			t.Cleanup(func() {
				if x.first.pool != nil {
					x.first.pool.Reset()
				}
			})
			return x.by.Cut()
		},
		Variant:  true,
		Provides: withClock(x.config.Provides),
		Weaker:   x.config.Weaker,
	})
}

func withClock(p conformance.ClaimerProvides) conformance.ClaimerProvides {
	p.TimeSource = true
	return p
}

func TestTableKeepsTheContract(t *testing.T) {
	for _, c := range []struct {
		driver    driver
		times     claim.TimeColumn
		id, state string
		more      bool // where there is time
	}{
		{driver: native, times: withZone, id: "varchar(255)", state: "shop_state"},
		{driver: standard, times: withoutZone, id: "text", state: "text", more: true},
		{driver: driver{native: true, mode: pgx.QueryExecModeSimpleProtocol}, times: withoutZone, id: `text COLLATE "C"`, state: "varchar(20)", more: true},
	} {
		if c.more && !stress() {
			continue
		}
		for _, config := range tabletest.Configs(c.times) {
			t.Run(config.Name+"/"+c.driver.name(), func(t *testing.T) {
				t.Attr("dueclaim.backend", config.Backend("postgres"))
				t.Parallel()
				newShops(t, c.driver, testserver.Postgres(t), config, c.id, c.state).run(t)
			})
		}
	}
}

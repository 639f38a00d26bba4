package mysqlclaim

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/claim"
	"github.com/dueclaim/dueclaim/conformance"
	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/tabletest"
	"github.com/dueclaim/dueclaim/internal/testserver/line"
)

// shops are tables of one database, for one case of the suite each, and used
// again by later ones.
type shops struct {
	fixture
	config tabletest.Config
	dbs    [2]*sql.DB
	line   line.Line // the first one's
	mu     sync.Mutex
	free   []string
	made   int
}

const shopTable = `CREATE TABLE %s (
	order_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE EXACT PRIMARY KEY,
	shop VARCHAR(20) NOT NULL,
	status ENUM('pending','processing','completed','given up') NOT NULL,
	created_at $time NOT NULL,
	due_at $time NOT NULL,
	kind VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL,
	payload LONGBLOB,
	token BIGINT,
	holder VARCHAR(64) CHARACTER SET latin1,
	lease_until $time NULL,
	attempts INT,
	crashes INT,
	last_error TEXT CHARACTER SET utf8mb4,
	updated_at $time NULL,
	deleted_at VARCHAR(20) NULL,
	KEY sweep (shop, status, $due)
)`

// newShops opens two pools with options, and one of the user's in UTC.
func newShops(t *testing.T, b backend, config tabletest.Config, options string) *shops {
	t.Helper()
	x := &shops{fixture: newFixture(t, b), config: config}
	x.db = open(t, x.dsn, "time_zone=%27%2B00%3A00%27")
	x.dbs = [2]*sql.DB{openBy(t, x.dsn, b.options(options), &x.line), open(t, x.dsn, b.options(options))}
	return x
}

func (x *shops) def(name string) claim.Table { return x.config.Table(name, "corner shop") }

// fresh returns an empty table's name.
func (x *shops) fresh(t *testing.T) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var name string
	if n := len(x.free); n > 0 {
		name, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.made++
		name = fmt.Sprintf("orders%d", x.made)
		due, _ := x.def(name).Due.Source()
		x.make(t, shopTable, name, "$time", timeType(x.config.Time()), "$due", due.Name)
	}
	t.Cleanup(func() {
		x.execLate(t, "DELETE FROM "+name)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.free = append(x.free, name)
	})
	return name
}

// put inserts rows as the shop would.
func (x *shops) put(t *testing.T, c core.Claimer, tasks []core.Task) {
	x.putIn(t, c.(*Table).quoted, "corner shop", tasks)
}

func (x *shops) putIn(t *testing.T, table, shop string, tasks []core.Task) {
	columns := tabletest.Columns()
	for len(tasks) > 0 {
		n := min(len(tasks), 500)
		var values []any
		for _, task := range tasks[:n] {
			values = append(values, x.config.Row(task, shop, func(c claim.TimeColumn, value int64) any {
				if c.Integer() {
					return value
				}
				return c.Text(value)
			})...)
		}
		row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
		_, err := x.db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES "+
			row+strings.Repeat(", "+row, n-1), values...)
		require.NoError(t, err)
		tasks = tasks[n:]
	}
}

func TestTableKeepsTheContract(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		for _, config := range tabletest.Configs(claim.TimeColumn{Kind: claim.DateTime, Digits: 3, Zone: time.UTC}) {
			options := []string{"interpolateParams=true"}
			if config.Name != "Full" || os.Getenv("DUECLAIM_STRESS") != "" { // what its times are depends on nothing
				options = append(options, "clientFoundRows=true&parseTime=true&loc=America%2FNew_York&time_zone=%27%2B05%3A30%27&isolation=READ-COMMITTED")
			}
			if os.Getenv("DUECLAIM_STRESS") == "" {
				options = options[len(options)-1:]
			}
			for _, o := range options {
				t.Run(config.Name+", "+o, func(t *testing.T) {
					t.Parallel()
					t.Attr("dueclaim.backend", config.Backend(b.name))
					tableConforms(t, b, config, o, nil)
				})
			}
		}
	})
}

func tableConforms(t *testing.T, b backend, config tabletest.Config, options string, skip map[string]string) {
	x := newShops(t, b, config, options)
	provides := config.Provides
	provides.TimeSource = true
	conformance.TestClaimer(t, conformance.Claimer{
		New: func(t *testing.T) core.Claimer { return newTable(t, x.dbs[0], x.def(x.fresh(t))) },
		Peer: func(t *testing.T, first core.Claimer) core.Claimer {
			return newTable(t, x.dbs[1], first.(*Table).def)
		},
		Put: x.put,
		Lock: func(t *testing.T, c core.Claimer, id core.ID) func() {
			ctx := context.WithoutCancel(t.Context())
			tx, err := x.db.BeginTx(ctx, nil)
			require.NoError(t, err)
			var one int
			require.NoError(t, tx.QueryRowContext(ctx, "SELECT 1 FROM "+c.(*Table).quoted+" WHERE order_id = ? FOR UPDATE", string(id)).Scan(&one))
			return func() { require.NoError(t, tx.Rollback()) }
		},
		Break:    func(*testing.T, core.Claimer) func() { return x.line.Cut() },
		Variant:  true,
		Provides: provides,
		Skip:     skip,
		Weaker:   config.Weaker,
	})
}

package unknowns

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
	"github.com/dueclaim/dueclaim/internal/wireproxy"
)

// executions counts, by a table of the server's, how often a statement of our own
// ran, when the exchange with it is broken as given and the caller doesn't repeat it.
func executions(t *testing.T, p *place, db *sql.DB, statement string, args []any, cut wireproxy.Cut) int {
	t.Helper()
	count := func() (n int) {
		require.NoError(t, p.direct.QueryRowContext(t.Context(), "SELECT n FROM counted").Scan(&n))
		return n
	}
	before := count()
	require.NoError(t, db.PingContext(t.Context()))
	p.proxy.Arm(wireproxy.Fault{Cut: cut, Needle: "counted"})
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	if cut != wireproxy.Stall {
		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	}
	defer cancel()
	_, err := db.ExecContext(ctx, statement, args...)
	require.Error(t, err, "%s: the outcome is unknown, and database/sql says so", cut)
	require.Zero(t, p.proxy.Disarm())
	return count() - before
}

func counted(t *testing.T, p *place) {
	for _, s := range []string{"CREATE TABLE counted (id INT PRIMARY KEY, n INT NOT NULL)", "INSERT INTO counted VALUES (1, 0)"} {
		_, err := p.direct.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
}

// afterEffect are the cuts at which a second execution would be seen.
var afterEffect = []wireproxy.Cut{wireproxy.EffectThenCut, wireproxy.HalfReply, wireproxy.Reset, wireproxy.Stall}

// lives plays claim, complete and retry on a place whose exchanges break after the
// effect, and counts each.
func lives(t *testing.T, p *place) (calls int) {
	p.counting(t)
	store := p.store(t, "default")
	sum := &tally{injected: map[wireproxy.Cut]int{}}
	for _, o := range p.operations(false) {
		if o.name == "insert" || o.name == "extend" {
			continue
		}
		for _, cut := range afterEffect {
			id := core.ID(fmt.Sprintf("%s-%d", o.name, cut))
			want := o.want
			want.Holder = "h-" + string(id)
			play(t, p, store, o, id, wireproxy.Fault{Cut: cut}, want, sum)
		}
	}
	assert.Equal(t, sum.calls, sum.happened)
	return sum.calls
}

// https://github.com/go-sql-driver/mysql/issues/582: a statement was sent again after
// a read time-out, since the driver had said that its connection was bad from the
// start, which database/sql repeats. https://github.com/golang/go/issues/11978 is
// the same from the other side.
func TestR52AStatementWhoseReplyIsLostIsExecutedOnceOnMySQL(t *testing.T) {
	calls := 0
	for name, options := range map[string]string{"prepared": "?readTimeout=5s", "interpolated": "?readTimeout=5s&interpolateParams=true"} {
		t.Run(name, func(t *testing.T) {
			t.Attr("dueclaim.backend", "store:mariadb")
			p := onMySQL(testserver.MariaDB, options)(t)
			counted(t, p)
			for _, cut := range afterEffect {
				assert.Equal(t, 1, executions(t, p, p.db, "UPDATE counted SET n = n + 1 WHERE id = ?", []any{1}, cut), "%s", cut)
				calls++
			}
			calls += lives(t, p)
		})
	}
	t.Attr("dueclaim.figure", fmt.Sprintf("go-sql-driver after the effect: %d calls, each executed once", calls))
}

// https://github.com/jackc/pgx/blob/master/CHANGELOG.md, 5.13.0: until then a lost
// reply through database/sql in the simple protocol was taken for a connection that
// nothing had been sent on: the statement ran twice, and no error told of it.
func TestR53AStatementWhoseReplyIsLostIsExecutedOnceOnPgx(t *testing.T) {
	t.Attr("dueclaim.backend", "store:postgres (database/sql)")
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`github.com/jackc/pgx/v5 v5\.(\d+)\.`).FindSubmatch(text)
	require.NotNil(t, version, "go.mod says which pgx")
	minor, err := strconv.Atoi(string(version[1]))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, minor, 13, "pgx before 5.13.0 repeats statements that were executed")

	p := onStdlib(pgx.QueryExecModeSimpleProtocol)(t)
	counted(t, p)
	calls := 0
	for _, cut := range afterEffect {
		assert.Equal(t, 1, executions(t, p, p.db, "UPDATE counted SET n = n + 1 WHERE id = $1", []any{1}, cut), "%s", cut)
		calls++
	}
	calls += lives(t, p)
	t.Attr("dueclaim.figure", fmt.Sprintf("pgx in the simple protocol after the effect: %d calls, each executed once", calls))
}

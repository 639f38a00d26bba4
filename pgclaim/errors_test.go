package pgclaim

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

func TestAMissingTableSaysMigrate(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.open(t, testserver.Postgres(t), Options{})
		_, err := s.Claim(t.Context(), []core.ID{"a"}, lease("h", 0))
		require.ErrorContains(t, err, "pgclaim: claim: table dueclaim_tasks is missing or has another shape: run Migrate: ")
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		assert.Equal(t, "42P01", pg.Code)
		_, err = s.Now(t.Context())
		require.NoError(t, err, "the clock needs no table")
	})
}

func TestAReadOnlyServerSaysSo(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		url := testserver.Postgres(t)
		require.NoError(t, d.open(t, url, Options{}).Migrate(t.Context()))
		d.session = map[string]string{"default_transaction_read_only": "on"}
		err := d.open(t, url, Options{}).Insert(t.Context(), call("c"), []core.Task{task("a", 0)})
		require.ErrorContains(t, err, "read-only; connect to the primary")
	})
}

func TestAServerThatIsNotThereIsNamedWithoutThePassword(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := listener.Addr().String()
		require.NoError(t, listener.Close())
		s := d.open(t, "postgres://user:hunter2@"+addr+"/db?sslmode=disable&connect_timeout=5", Options{})
		for name, call := range map[string]func() error{
			"migrate": func() error { return s.Migrate(t.Context()) },
			"claim":   func() error { _, err := s.Claim(t.Context(), []core.ID{"a"}, lease("h", 0)); return err },
		} {
			err := call()
			require.ErrorContains(t, err, addr, name)
			assert.NotContains(t, err.Error(), "hunter2")
			var connect *pgconn.ConnectError
			require.ErrorAs(t, err, &connect)
		}
	})
}

func TestADoneContextDoesNothingAndAnEmptyBatchNeedsNoServer(t *testing.T) {
	eachDriver(t, func(t *testing.T, d driver) {
		s := d.migrated(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Insert(ctx, call("c"), []core.Task{task("a", 0)}), context.Canceled)
		assert.Empty(t, s.text(t, "SELECT id FROM dueclaim_tasks"))
		away := d.open(t, "postgres://127.0.0.1:1/db", Options{})
		require.NoError(t, away.Insert(t.Context(), call("c"), nil))
		require.NoError(t, away.Settle(t.Context(), at(0), nil))
		claimed, err := away.Claim(t.Context(), nil, lease("h", 0))
		require.NoError(t, err)
		assert.Empty(t, claimed)
	})
}

// hidden wraps a connection as a tracer would; *stdlib.Conn can't be seen in it.
type hidden struct{ *stdlib.Conn }

type hider struct{ sqldriver.Connector }

func (h hider) Connect(ctx context.Context) (sqldriver.Conn, error) {
	c, err := h.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return hidden{c.(*stdlib.Conn)}, nil
}

type shown struct{ hidden }

func (s shown) Raw() sqldriver.Conn { return s.Conn }

type shower struct{ sqldriver.Connector }

func (h shower) Connect(ctx context.Context) (sqldriver.Conn, error) {
	c, err := h.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return shown{hidden{c.(*stdlib.Conn)}}, nil
}

func TestAWrappedDriverWorksToo(t *testing.T) {
	t.Attr("dueclaim.backend", standard.backend())
	config, err := pgx.ParseConfig(testserver.Postgres(t))
	require.NoError(t, err)
	connector := stdlib.GetConnector(*config)
	for want, c := range map[int32]sqldriver.Connector{exec: hider{connector}, describe: shower{connector}} {
		db := sql.OpenDB(c)
		t.Cleanup(func() { _ = db.Close() })
		s, err := NewSQL(db, Options{Table: strings.Repeat("t", int(want))})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.Insert(t.Context(), call("c"), []core.Task{task("a", 0)}))
		s.claimOne(t, "a", lease("h", 0))
		assert.Equal(t, want, s.modes.choice.Load())
	}
}

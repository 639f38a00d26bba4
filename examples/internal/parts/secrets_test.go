package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chain is every error that err wraps, itself included.
func chain(err error) (all []error) {
	if err == nil {
		return nil
	}
	all = append(all, err)
	switch x := err.(type) { //nolint:errorlint // each link is wanted
	case interface{ Unwrap() error }:
		all = append(all, chain(x.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			all = append(all, chain(e)...)
		}
	}
	return all
}

// TestNoErrorOrLogShowsAPassword: neither of a server that isn't there, nor of a DSN
// that is malformed, in any link of the error's chain and in any way to print it.
func TestNoErrorOrLogShowsAPassword(t *testing.T) {
	const secret = "s3cret"
	for _, c := range []Choice{
		{Index: "redis://worker:s3cret@127.0.0.1:1/0", Store: "sqlite"},
		{Index: "redis://:s3cret@127.0.0.1:1/0?max_retries=s3cret", Store: "sqlite"},
		{Index: "redis://:s3cret@127.0.0.1:1/nodatabase", Store: "sqlite"},
		{Index: "redis://:s3cret%zz@127.0.0.1:1/0", Store: "sqlite"},
		{Index: "redis:/:s3cret@127.0.0.1:1", Store: "sqlite"},
		{Index: "heap", Store: "mysql://u:s3cret@127.0.0.1:1/db"},
		{Index: "heap", Store: "mysql://u:s3cret@127.0.0.1:1/db?timeout=s3cret"},
		{Index: "heap", Store: "mysql://u:s3cret@127.0.0.1:1/db?tls=s3cret"},
		{Index: "heap", Store: "mysql://u:s3cret@127.0.0.1:port/db"},
		{Index: "heap", Store: "mysql://u:s3cret@[::1/db"},
		{Index: "heap", Store: "u:s3cret@tcp(127.0.0.1:1)/db"},
		{Index: "heap", Store: "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable"},
		{Index: "heap", Store: "postgres://u@127.0.0.1:1/db?password=s3cret&sslmode=disable"},
		{Index: "heap", Store: "postgres://u:s3cret@127.0.0.1:1/db?sslmode=s3cret"},
		{Index: "heap", Store: "postgres://u:s3cret@127.0.0.1:port/db"},
		{Index: "heap", Store: "postgres://u:s3cret@127.0.0.1:1/db?pool_max_conns=s3cret"},
		{Index: "heap", Store: "postgres://u:s3cr et%@127.0.0.1:1/db"},
	} {
		c.Table, c.Queue = "tasks", "q"
		c = c.WithFile(t.TempDir())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		p, err := Open(ctx, c)
		cancel()
		if err == nil {
			require.NoError(t, p.Close())
		}
		require.Error(t, err, "%s %s", c.Index, c.Store)
		var log bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(h).Error("failed", "err", err, "choice", c.String())
		}
		for _, e := range chain(err) {
			fmt.Fprintf(&log, "%v\n%+v\n%s\n", e, e, e.Error())
		}
		assert.NotContains(t, log.String(), secret)
		assert.False(t, errors.Is(err, context.DeadlineExceeded), "nothing was waited for")
	}
}

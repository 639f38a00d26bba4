package pgclaim

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
	"github.com/dueclaim/dueclaim/internal/testserver"
)

// cutter is a proxy before the server that can lose a reply.
type cutter struct {
	listener net.Listener
	server   string
	cut      atomic.Bool // the next reply is lost and its connection with it
}

func newCutter(t *testing.T, to string) (c *cutter, through string) {
	u, err := url.Parse(to)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c = &cutter{listener: listener, server: u.Host}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	u.Host = listener.Addr().String()
	return c, u.String()
}

func (c *cutter) serve(client net.Conn) {
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		_ = client.Close()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || c.cut.CompareAndSwap(true, false) {
			break
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			break
		}
	}
	_ = client.Close()
	_ = server.Close()
	wg.Wait()
}

// A reply that is lost is an error, not a silent second execution, and a repeat
// with the same arguments finds what the first call did.
func TestALostReplyIsAnUnknownOutcomeAndARepeatIsHarmless(t *testing.T) {
	eachMode(t, func(t *testing.T, d driver) {
		direct := testserver.Postgres(t)
		proxy, through := newCutter(t, direct)
		s, watch := d.open(t, through, Options{}), native.open(t, direct, Options{})
		require.NoError(t, s.Migrate(t.Context()))
		ctx := context.WithoutCancel(t.Context())
		in := []core.Task{task("a", 0)}
		var claimed []core.Claimed
		var fates []core.Fate
		for _, step := range []struct {
			name string
			warm func() error // the same statement, so that its description is known
			call func() error
		}{
			{"insert", func() error { return s.Insert(ctx, call("warm"), []core.Task{task("warm", 0)}) },
				func() error { return s.Insert(ctx, call("c"), in) }},
			{"claim", func() error { _, err := s.Claim(ctx, []core.ID{"none"}, lease("warm", 1)); return err },
				func() (err error) { claimed, err = s.Claim(ctx, []core.ID{"a"}, lease("h", 1)); return err }},
			{"extend", func() error { return nil },
				func() error { return s.Extend(ctx, []core.Grant{claimed[0].Grant}, at(50)) }},
			{"settle", func() error { return nil },
				func() error {
					return s.Settle(ctx, at(2), []core.Settlement{{Grant: claimed[0].Grant, Outcome: core.Retry, Due: at(70)}})
				}},
			{"reschedule", func() error { return nil },
				func() error {
					return s.Reschedule(ctx, core.Call{Now: at(2)}, []core.Move{{ID: "a", From: at(70), To: at(80)}})
				}},
			{"cancel", func() error { _, err := s.Cancel(ctx, core.Call{Now: at(1)}, []core.ID{"none"}); return err },
				func() (err error) { fates, err = s.Cancel(ctx, core.Call{Now: at(3)}, []core.ID{"a"}); return err }},
		} {
			require.NoError(t, step.warm(), step.name)
			proxy.cut.Store(true)
			err := step.call()
			require.Error(t, err, step.name)
			require.False(t, errors.Is(err, sqldriver.ErrBadConn), "%s: %v", step.name, err)
			var batch *core.BatchError
			require.False(t, errors.As(err, &batch), "%s: %v", step.name, err)
			require.Eventually(t, func() bool { return step.call() == nil }, 10*time.Second, 20*time.Millisecond, "%s", step.name)
			require.NoError(t, step.call(), "%s: once more", step.name)
		}
		assert.Equal(t, core.Granted, claimed[0].Verdict)
		assert.WithinDuration(t, time.Now(), time.UnixMicro(claimed[0].Grant.Token), time.Minute, "one grant of a row made now")
		assert.Equal(t, []core.Fate{core.Cancelled}, fates)
		assert.Equal(t, []string{"cancelled 1 0"}, watch.text(t, "SELECT concat_ws(' ', status, attempts, crashes) FROM dueclaim_tasks WHERE id = 'a'"))
	})
}

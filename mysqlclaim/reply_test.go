package mysqlclaim

import (
	"database/sql"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dueclaim/dueclaim/core"
)

// cutter is a proxy that, when told to, swallows a reply of the server and
// breaks the connection: the statement took effect, and the client can't know.
type cutter struct {
	addr string
	left atomic.Int64 // replies to let through before the cut; negative: no cut
}

// newCutter listens until the test ends.
func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{addr: l.Addr().String()}
	c.left.Store(-1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			wg.Go(func() { // requests
				_, _ = io.Copy(upstream, client)
				_ = upstream.Close()
			})
			wg.Go(func() {
				c.replies(client, upstream)
				_ = client.Close()
				_ = upstream.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return c
}

func (c *cutter) replies(client io.Writer, upstream io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(buf)
		if err != nil {
			return
		}
		if left := c.left.Load(); left >= 0 && c.left.Add(-1) < 0 {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// within runs call while the reply after `pass` others is swallowed, and then
// again without a fault. It returns false where call needed fewer replies.
func (c *cutter) within(t *testing.T, pass int64, call func() error) bool {
	t.Helper()
	c.left.Store(pass)
	err := call()
	cut := c.left.Swap(-1) < 0
	if cut {
		require.Error(t, err, "reply %d was lost", pass)
		require.ErrorIs(t, err, mysql.ErrInvalidConn)
		var batch *core.BatchError
		require.NotErrorAs(t, err, &batch)
	} else {
		require.NoError(t, err)
	}
	require.NoError(t, call(), "the repeat after reply %d was lost", pass)
	return cut
}

func TestARepeatAfterALostReplyChangesNothingMore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend) {
		config, err := mysql.ParseDSN(b.database(t))
		require.NoError(t, err)
		proxy := newCutter(t, config.Addr)
		direct := newStore(t, open(t, config.FormatDSN(), ""), Options{})
		config.Addr = proxy.addr
		db := open(t, config.FormatDSN(), "")
		faulty, err := New(db, Options{})
		require.NoError(t, err)
		_, err = faulty.Now(t.Context())
		require.NoError(t, err)
		require.NoError(t, faulty.ready(t.Context(), faulty.db))

		for pass := int64(0); ; pass++ {
			id := core.ID(rune('a' + pass))
			if !lifeWithLostReplies(t, proxy, pass, db, direct, faulty, id) {
				break
			}
		}
	})
}

// lifeWithLostReplies loses one reply of each call; false where no call had
// that many.
func lifeWithLostReplies(t *testing.T, proxy *cutter, pass int64, db *sql.DB, direct, s *Store, id core.ID) (lost bool) {
	ctx := t.Context()
	lose := func(call func() error) {
		require.NoError(t, db.PingContext(ctx)) // so that the lost reply isn't one of a new connection's greeting
		lost = proxy.within(t, pass, call) || lost
	}
	var claimed []core.Claimed
	claim := func(lease core.Lease) {
		lose(func() (err error) {
			claimed, err = s.Claim(ctx, []core.ID{id}, lease)
			return err
		})
		require.Equal(t, core.Granted, claimed[0].Verdict)
	}
	settle := func(outcome core.Outcome, due int) {
		st := []core.Settlement{{Grant: claimed[0].Grant, Outcome: outcome, Due: at(due), Err: "e"}}
		lose(func() error { return s.Settle(ctx, at(due), st) })
	}
	lose(func() error { return s.Insert(ctx, callNamed("first"), []core.Task{task(id)}) })
	lose(func() error {
		return s.Reschedule(ctx, core.Call{Now: base}, []core.Move{{ID: id, From: base, To: at(1)}})
	})
	claim(leaseOf("h1", at(1)))
	lose(func() error { return s.Extend(ctx, []core.Grant{claimed[0].Grant}, at(60_000)) })
	settle(core.Retry, 2)
	claim(leaseOf("h2", at(2)))
	settle(core.Released, 3)
	claim(leaseOf("h3", at(3)))
	assert.Equal(t, 2, claimed[0].Attempt, "one retry, one release")
	settle(core.DeadLetter, 4)
	lose(func() error { return s.Insert(ctx, callNamed("second"), []core.Task{task(id)}) })
	before := claimed[0].Grant.Token
	claim(leaseOf("h4", at(5)))
	assert.Greater(t, claimed[0].Grant.Token, before+1, "a replacement, a grant")
	assert.Equal(t, 1, claimed[0].Attempt)
	var fates []core.Fate
	lose(func() (err error) {
		fates, err = s.Cancel(ctx, core.Call{Now: at(6)}, []core.ID{id})
		return err
	})
	assert.Equal(t, []core.Fate{core.WasRunning}, fates)
	n, err := direct.Purge(ctx, at(7), 10)
	require.NoError(t, err)
	assert.Equal(t, 1, n, "one row, finished once")
	return lost
}

package conformance_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/dueclaim/dueclaim/conformance"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echoServer returns what dials a server that answers with what it gets.
func echoServer(t *testing.T, l *conformance.Line) (dial func() (net.Conn, error)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	return func() (net.Conn, error) { return l.Dial(t.Context(), "tcp", listener.Addr().String()) }
}

func echoes(conn net.Conn) bool {
	if _, err := conn.Write([]byte("x")); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err == nil
}

func TestACutLineEndsWhatStandsAndRefusesWhatIsNewUntilItIsMended(t *testing.T) {
	var l conformance.Line
	dial := echoServer(t, &l)
	conn, err := dial()
	require.NoError(t, err)
	require.True(t, echoes(conn))
	mend := l.Cut()
	assert.False(t, echoes(conn))
	_, err = dial()
	require.ErrorIs(t, err, conformance.ErrLineCut)
	mend()
	assert.False(t, echoes(conn), "what was cut stays so")
	again, err := dial()
	require.NoError(t, err)
	assert.True(t, echoes(again))
	require.NoError(t, conn.Close())
	require.NoError(t, again.Close())
}

func TestAHeldLinePassesNothingOnUntilItIsReleased(t *testing.T) {
	var l conformance.Line
	dial := echoServer(t, &l)
	conn, err := dial()
	require.NoError(t, err)
	release := l.Hold()
	fresh, err := dial()
	require.NoError(t, err, "a new connection can be made, and is silent")
	for _, c := range []net.Conn{conn, fresh} {
		n, err := c.Write([]byte("first "))
		require.NoError(t, err)
		require.Equal(t, 6, n)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(60*time.Millisecond)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorContains(t, err, "timeout", "deadlines hold on a held line")
		require.NoError(t, c.SetReadDeadline(time.Time{}))
	}
	require.NoError(t, fresh.Close())
	release()
	_, err = conn.Write([]byte("second"))
	require.NoError(t, err)
	got := make([]byte, 12)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	assert.Equal(t, "first second", string(got))
	require.NoError(t, conn.Close())
}

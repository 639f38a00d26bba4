package line_test

import (
	"io"
	"net"
	"testing"

	"github.com/dueclaim/dueclaim/internal/testserver/line"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACutEndsWhatStandsAndRefusesWhatIsNewUntilItIsMended(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	var l line.Line
	dial := func() (net.Conn, error) { return l.Dial(t.Context(), "tcp", listener.Addr().String()) }
	echoes := func(conn net.Conn) bool {
		if _, err := conn.Write([]byte("x")); err != nil {
			return false
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err == nil
	}
	conn, err := dial()
	require.NoError(t, err)
	require.True(t, echoes(conn))
	mend := l.Cut()
	assert.False(t, echoes(conn))
	_, err = dial()
	require.ErrorIs(t, err, line.ErrCut)
	mend()
	assert.False(t, echoes(conn), "what was cut stays so")
	again, err := dial()
	require.NoError(t, err)
	assert.True(t, echoes(again))
	require.NoError(t, conn.Close())
	require.NoError(t, again.Close())
}

// Package line is a client's way to its server that a test may cut and mend, as a
// cable is: connections that stand come to their end, and no new one is made. The
// server goes on and knows no more than that its client is gone.
package line

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Line dials for a client. The zero value is an uncut line; it is safe for
// concurrent use.
type Line struct {
	dialer net.Dialer

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// ErrCut is why a cut line doesn't dial.
var ErrCut = errors.New("the line is cut")

// Dial connects like a net.Dialer. It returns the *net.TCPConn itself, into whose
// socket some drivers look.
func (l *Line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.isCut() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: ErrCut}
	}
	conn, err := l.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		shut(conn)
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

func (l *Line) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// Cut ends all connections and refuses new ones until mend is called.
func (l *Line) Cut() (mend func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, conn := range l.conns {
		shut(conn)
	}
	l.conns = nil
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cut = false
	}
}

// shut makes a connection look as if its other end had closed it: reads end, and
// writes fail. Its owner closes it.
func shut(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseRead() // fails where its owner has closed it already
		_ = tcp.CloseWrite()
		return
	}
	_ = conn.Close()
}

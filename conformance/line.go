package conformance

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Line is a client's way to its server that a test may cut and mend, or hold up, as a
// cable is: for the hooks Break and Hold. The server goes on and knows no more than
// that its client is gone, or silent. Give Dial to the driver (pgx: ConnConfig.DialFunc;
// go-sql-driver/mysql: Config.DialFunc; go-redis: Options.Dialer). The zero value is a
// line that is well; it is safe for concurrent use.
type Line struct {
	dialer net.Dialer

	mu    sync.Mutex
	cut   bool
	held  bool
	conns []*lineConn
}

// ErrLineCut is why a cut line doesn't dial.
var ErrLineCut = errors.New("conformance: the line is cut")

// Dial connects like a net.Dialer.
func (l *Line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.isCut() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: ErrLineCut}
	}
	inner, err := l.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := &lineConn{Conn: inner}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		conn.shut()
	}
	if l.held {
		conn.hold()
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
		conn.shut()
	}
	l.conns = nil
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cut = false
	}
}

// Hold keeps back what is sent, on all connections and on new ones, until release is
// called: no call is answered, and none fails by itself. What was sent meanwhile arrives
// then, unless its connection was closed.
func (l *Line) Hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
	for _, conn := range l.conns {
		conn.hold()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held = false
		for _, conn := range l.conns {
			conn.release()
		}
	}
}

// lineConn is a connection of a Line.
type lineConn struct {
	net.Conn

	mu   sync.Mutex
	held bool
	kept []byte // what was written while it was held
}

// SyscallConn is there for drivers that look into the socket.
func (c *lineConn) SyscallConn() (syscall.RawConn, error) {
	if inner, ok := c.Conn.(syscall.Conn); ok {
		return inner.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Write writes, or keeps what is to be written, as the buffer of a socket does.
func (c *lineConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *lineConn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = true
}

func (c *lineConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	if len(c.kept) > 0 {
		_, _ = c.Conn.Write(c.kept) // fails where it was closed meanwhile
	}
	c.kept = nil
}

// shut makes a connection look as if its other end had closed it: reads end, and
// writes fail. Its owner closes it.
func (c *lineConn) shut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseRead() // fails where its owner has closed it already
		_ = tcp.CloseWrite()
		return
	}
	_ = c.Close()
}

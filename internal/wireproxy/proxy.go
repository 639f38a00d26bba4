package wireproxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes connections on to a server and breaks them when told to. Its methods
// may be called concurrently.
type Proxy struct {
	protocol Protocol
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu        sync.Mutex
	armed     []Fault
	choose    func(request []byte) Fault
	injected  map[Cut]int
	exchanges int
	closed    bool
	refusing  bool
	thawed    chan struct{} // not nil while it is frozen; closed by the thaw
	delay     time.Duration
	conns     map[*conn]bool
}

// New returns a proxy before the server at addr, "host:port", until the test ends.
func New(t testing.TB, protocol Protocol, addr string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("wireproxy: %v", err)
	}
	p := &Proxy{protocol: protocol, target: addr, listener: listener, injected: map[Cut]int{}, conns: map[*conn]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect to, "host:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Refuse says whether new connections are reset at once.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = refuse
}

// DropAll ends the connections that stand and returns how many they were.
func (p *Proxy) DropAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns)
	for c := range p.conns {
		c.end()
	}
	return n
}

// Freeze has connections accepted and nothing passed on either way, until thaw is
// called. What was on its way then goes on.
func (p *Proxy) Freeze() (thaw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed == nil {
		p.thawed = make(chan struct{})
	}
	thawed := p.thawed
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.thawed == thawed {
			close(thawed)
			p.thawed = nil
		}
	}
}

// Delay has each answer wait for d; 0 ends that.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		c := &conn{proxy: p, client: client.(*net.TCPConn), wire: p.protocol.wire(), ended: make(chan struct{})}
		if !p.admits(c) {
			_ = c.client.SetLinger(0)
			_ = c.client.Close()
			continue
		}
		p.running.Go(func() {
			defer p.forget(c)
			c.run()
		})
	}
}

func (p *Proxy) admits(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing || p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.DropAll()
	p.running.Wait()
}

// mode is what the line is like just now.
func (p *Proxy) mode() (thawed <-chan struct{}, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed, p.delay
}

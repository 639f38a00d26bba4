package chaos

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// forwarder is an address whose server can be changed, as the name of a managed
// Redis is at a failover: connections to the old one break.
type forwarder struct {
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
}

func forward(t *testing.T, target string) *forwarder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &forwarder{listener: listener, target: target, conns: map[net.Conn]bool{}}
	f.all.Go(f.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		f.change("")
		f.all.Wait()
	})
	return f
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

// change leads new connections to another server and breaks the others.
func (f *forwarder) change(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = target
	for conn := range f.conns {
		_ = conn.Close()
	}
}

func (f *forwarder) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.all.Go(func() { f.serve(client) })
	}
}

func (f *forwarder) serve(client net.Conn) {
	defer client.Close()
	f.mu.Lock()
	target := f.target
	f.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	if !f.keep(target, client, server) {
		return
	}
	defer f.forget(client, server)
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

// keep registers a pair of connections; false when the target was changed since.
func (f *forwarder) keep(target string, conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		f.conns[conn] = true
	}
	if f.target != target {
		for _, conn := range conns {
			delete(f.conns, conn)
		}
		return false
	}
	return true
}

func (f *forwarder) forget(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		delete(f.conns, conn)
	}
}

package wireproxy

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// conn is one client and its connection to the server. One goroutine reads what
// the client sends, one what the server sends, and a third, run, has the say.
type conn struct {
	proxy          *Proxy
	client, server *net.TCPConn
	wire           wire
	requests       chan []byte // closed when the client is gone
	replies        chan []byte // closed when the server is gone
	once           sync.Once
	ended          chan struct{} // closed when the proxy ends the connection
}

func (c *conn) end() { c.once.Do(func() { close(c.ended) }) }

func (c *conn) run() {
	defer func() { _ = c.client.Close() }()
	server, err := net.DialTimeout("tcp", c.proxy.target, 10*time.Second)
	if err != nil {
		return
	}
	c.server = server.(*net.TCPConn)
	// Room for what a client sends ahead, so that it never waits with its sending
	// for somebody who waits for it to receive.
	c.requests, c.replies = make(chan []byte, 4096), make(chan []byte, 64)
	var readers sync.WaitGroup
	readers.Go(func() { c.read(c.client, c.wire.readRequest, c.requests) })
	readers.Go(func() { c.read(c.server, c.wire.readReply, c.replies) })
	readers.Go(func() { // so that nobody waits for a reader or a writer that doesn't
		<-c.ended
		_ = c.client.Close()
		_ = c.server.Close()
	})
	for c.step() {
	}
	c.end()
	readers.Wait()
}

func (c *conn) read(from *net.TCPConn, message func(*bufio.Reader) ([]byte, error), to chan<- []byte) {
	defer close(to)
	r := bufio.NewReaderSize(from, 32<<10)
	for {
		raw, err := message(r)
		if err != nil {
			return
		}
		select {
		case to <- raw:
		case <-c.ended:
			return
		}
	}
}

// step passes on a message that the server sent by itself, or does an exchange. It
// returns false when the connection is over.
func (c *conn) step() bool {
	select {
	case raw, ok := <-c.requests:
		return ok && c.exchange(raw)
	case message, ok := <-c.replies:
		if !ok {
			return false
		}
		if !c.wire.ready() {
			c.wire.greeted(message)
		}
		return c.deliver(message)
	case <-c.ended:
		return false
	}
}

func (c *conn) exchange(raw []byte) bool {
	r := c.wire.next(raw)
	if r.reply != nil {
		return c.deliver(r.reply)
	}
	if !c.thawed() {
		return false
	}
	var f Fault
	if r.asks {
		f = c.proxy.fault(r)
	}
	sent := raw
	switch f.Cut {
	case BeforeRequest:
		sent = nil
	case HalfRequest:
		sent = raw[:len(raw)/2]
	}
	if _, err := c.server.Write(sent); err != nil {
		return false
	}
	switch f.Cut {
	case BeforeRequest, HalfRequest:
		c.proxy.count(f.Cut)
		return false
	case AfterRequest:
		c.proxy.count(f.Cut)
		c.abandon()
		return false
	}
	if !r.asks {
		return true
	}
	answer, whole := c.answer()
	switch {
	case f.Cut == 0:
		return c.deliver(answer) && whole
	case !whole: // the server is gone by itself
		return false
	}
	c.proxy.count(f.Cut)
	return c.spoil(answer, f)
}

// answer waits for all that the server has to say to a request.
func (c *conn) answer() (all []byte, whole bool) {
	for {
		select {
		case message, ok := <-c.replies:
			if !ok {
				return all, false
			}
			all = append(all, message...)
			if c.wire.answered(message) {
				return all, true
			}
		case <-c.ended:
			return nil, false
		}
	}
}

// spoil is what the client gets of an answer that is whole, by the faults that
// come after the effect.
func (c *conn) spoil(answer []byte, f Fault) bool {
	switch f.Cut {
	case HalfReply:
		c.deliver(answer[:len(answer)/2])
	case Reset:
		_ = c.client.SetLinger(0)
	case Stall:
		c.untilClientGone()
	case ErrorReply:
		packet, last := c.wire.refusal(answer, f)
		return c.deliver(packet) && !last
	}
	return false
}

// abandon closes the client's side and leaves the server with the request: it sees
// the end of the connection when it has done it.
func (c *conn) abandon() {
	_ = c.client.Close()
	_ = c.server.CloseWrite()
	for {
		select {
		case _, ok := <-c.replies:
			if !ok {
				return
			}
		case <-c.ended:
			return
		}
	}
}

func (c *conn) untilClientGone() {
	for {
		select {
		case _, ok := <-c.requests:
			if !ok {
				return
			}
		case <-c.ended:
			return
		}
	}
}

// deliver gives the client what it is to have, when the line's mode allows it.
func (c *conn) deliver(b []byte) bool {
	if _, delay := c.proxy.mode(); delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ended:
			return false
		}
	}
	if !c.thawed() {
		return false
	}
	_, err := c.client.Write(b)
	return err == nil
}

// thawed waits while the proxy is frozen; false when the connection is ended.
func (c *conn) thawed() bool {
	for {
		thawed, _ := c.proxy.mode()
		if thawed == nil {
			return true
		}
		select {
		case <-thawed:
		case <-c.ended:
			return false
		}
	}
}

package wireproxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Protocol is what a proxy's clients speak.
type Protocol int

// The protocols.
const (
	MySQL Protocol = iota + 1 // and MariaDB
	Postgres
	Redis // and Valkey; RESP2 and RESP3
)

// request is what a client sends as one.
type request struct {
	raw []byte
	// asks says that an answer belongs to it, which ends where wire.answered says
	// so. What doesn't ask is passed on at once.
	asks bool
	// executes: the request does something, as far as faults are concerned; prepares:
	// it prepares a statement.
	executes, prepares bool
	statements         []string // texts of prepared statements that it executes
	reply              []byte   // the proxy's own, in place of the server's
}

// wire is the state of one connection. The readers are used by one goroutine each
// and share nothing; the rest belongs to a third.
type wire interface {
	// readRequest and readReply read the bytes of one message, or of several that
	// belong together.
	readRequest(from *bufio.Reader) ([]byte, error)
	readReply(from *bufio.Reader) ([]byte, error)
	// next says what a message of the client is.
	next(raw []byte) request
	// ready says that the login is over; until then all passes both ways.
	ready() bool
	// greeted is shown the server's messages until then.
	greeted(message []byte)
	// answered is shown the server's messages after a request that asks, and says
	// whether the answer is whole.
	answered(message []byte) bool
	// refusal is an answer that is an error, in place of the whole one that came;
	// last: the connection ends after it.
	refusal(answer []byte, f Fault) (packet []byte, last bool)
}

func (p Protocol) wire() wire {
	switch p {
	case MySQL:
		return &mysqlWire{prepared: map[uint32]string{}}
	case Postgres:
		return &postgresWire{prepared: map[string]string{}}
	default:
		return &redisWire{}
	}
}

// A message that is longer than this is none: the stream was misread.
const longest = 256 << 20

var errTooLong = errors.New("wireproxy: a message of more than 256 MiB")

// readN appends n bytes of a stream.
func readN(from *bufio.Reader, to []byte, n int) ([]byte, error) {
	if n < 0 || n > longest {
		return nil, errTooLong
	}
	at := len(to)
	to = append(to, make([]byte, n)...)
	_, err := io.ReadFull(from, to[at:])
	return to, err
}

// cString returns a text that ends with a NUL, and what follows it.
func cString(b []byte) (string, []byte) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), b[i+1:]
		}
	}
	return string(b), nil
}

func misread(what string, b []byte) error {
	return fmt.Errorf("wireproxy: %s can't begin with %q", what, b[:min(len(b), 16)])
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func be32(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }

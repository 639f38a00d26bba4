package wireproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
)

// postgresWire is a connection to Postgres. The client's first message has no
// type, and of what follows all up to a Sync is one request.
type postgresWire struct {
	started  bool // the client's first message was read
	loggedIn bool
	prepared map[string]string
}

const (
	sslRequest = 80877103
	gssRequest = 80877104
)

func (w *postgresWire) readRequest(from *bufio.Reader) ([]byte, error) {
	if !w.started {
		raw, err := readN(from, nil, 4)
		if err != nil {
			return nil, err
		}
		if raw, err = readN(from, raw, be32(raw)-4); err != nil {
			return nil, err
		}
		if !asksForTLS(raw) {
			w.started = true
		}
		return raw, nil
	}
	var raw []byte
	for {
		message, err := readMessage(from)
		if err != nil {
			return nil, err
		}
		raw = append(raw, message...)
		switch message[0] {
		case 'P', 'B', 'D', 'E', 'C': // of the extended protocol: a Sync or a Flush follows
		default:
			return raw, nil
		}
	}
}

func (*postgresWire) readReply(from *bufio.Reader) ([]byte, error) { return readMessage(from) }

func readMessage(from *bufio.Reader) ([]byte, error) {
	raw, err := readN(from, nil, 5)
	if err != nil {
		return nil, err
	}
	return readN(from, raw, be32(raw[1:])-4)
}

// asksForTLS says whether a first message is the question that has an answer of
// one byte.
func asksForTLS(raw []byte) bool {
	if len(raw) != 8 {
		return false
	}
	code := be32(raw[4:])
	return code == sslRequest || code == gssRequest
}

func (w *postgresWire) ready() bool { return w.loggedIn }

func (w *postgresWire) greeted(message []byte) { w.loggedIn = message[0] == 'Z' }

func (w *postgresWire) next(raw []byte) request {
	r := request{raw: raw}
	if !w.loggedIn {
		if asksForTLS(raw) {
			r.reply = []byte("N")
		}
		return r
	}
	for rest := raw; len(rest) >= 5; {
		n := be32(rest[1:]) + 1
		body := rest[5:n]
		switch rest[0] {
		case 'Q':
			r.asks, r.executes = true, !quiet(body)
		case 'F': // a function call
			r.asks, r.executes = true, true
		case 'S':
			r.asks = true
		case 'P':
			name, after := cString(body)
			w.prepared[name], _ = cString(after)
			r.prepares = true
		case 'B':
			_, after := cString(body) // the portal
			name, _ := cString(after)
			r.statements = append(r.statements, w.prepared[name])
		case 'E':
			r.executes = true
		}
		rest = rest[n:]
	}
	return r
}

// quiet is a query of a driver's own: nothing, or a comment that asks whether the
// connection is alive.
func quiet(query []byte) bool {
	text := strings.TrimSpace(strings.TrimRight(string(query), "\x00;"))
	return text == "" || strings.HasPrefix(text, "--")
}

func (*postgresWire) answered(message []byte) bool { return message[0] == 'Z' }

// refusal keeps what the answer said of the transaction.
func (*postgresWire) refusal(answer []byte, f Fault) ([]byte, bool) {
	severity, last := "ERROR", strings.HasPrefix(f.Code, "57P0")
	if last {
		severity = "FATAL"
	}
	var body bytes.Buffer
	for _, field := range []string{"S" + severity, "V" + severity, "C" + f.Code, "M" + f.Text} {
		body.WriteString(field)
		body.WriteByte(0)
	}
	body.WriteByte(0)
	packet := binary.BigEndian.AppendUint32([]byte{'E'}, uint32(body.Len()+4))
	packet = append(packet, body.Bytes()...)
	if last {
		return packet, true
	}
	return append(packet, answer[len(answer)-6:]...), false
}

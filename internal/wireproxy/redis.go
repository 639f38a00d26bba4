package wireproxy

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// redisWire is a connection to Redis. A message is a value with all that is in it.
type redisWire struct{}

func (*redisWire) readRequest(from *bufio.Reader) ([]byte, error) { return readValue(from, nil) }
func (*redisWire) readReply(from *bufio.Reader) ([]byte, error)   { return readValue(from, nil) }

// readValue appends a value of RESP2 or RESP3.
func readValue(from *bufio.Reader, to []byte) ([]byte, error) {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	to = append(to, line...)
	n := 0
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(': // a line
		return to, nil
	case '$', '!', '=', '*', '~', '>', '%', '|':
		if n, err = strconv.Atoi(string(bytes.TrimSpace(line[1:]))); err != nil || n < 0 {
			return to, err
		}
	default:
		return nil, misread("a Redis value", line)
	}
	switch line[0] {
	case '$', '!', '=':
		return readN(from, to, n+2)
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1 // the value that the attributes are about follows them
	}
	for range n {
		if to, err = readValue(from, to); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func (*redisWire) ready() bool    { return true }
func (*redisWire) greeted([]byte) {}

func (w *redisWire) next(raw []byte) request {
	r := request{raw: raw, asks: true, executes: true}
	switch command(raw) {
	case "HELLO", "AUTH", "CLIENT", "SELECT", "PING", "QUIT", "COMMAND":
		r.executes = false
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		r.asks, r.executes = false, false // what comes of it comes as messages do, in any number
	}
	return r
}

// command is the first word of an array of texts.
func command(raw []byte) string {
	lines := bytes.SplitN(raw, []byte("\r\n"), 4)
	if len(lines) < 3 {
		return ""
	}
	return strings.ToUpper(string(lines[2]))
}

func (*redisWire) answered(message []byte) bool { return message[0] != '>' }

func (*redisWire) refusal(_ []byte, f Fault) ([]byte, bool) {
	return []byte("-" + f.Code + " " + f.Text + "\r\n"), false
}

package wireproxy

import (
	"bufio"
	"encoding/binary"
	"strconv"
)

// mysqlWire is a connection to MySQL or MariaDB. A message is a packet; one of
// 16 MiB goes on in the next.
type mysqlWire struct {
	loggedIn     bool
	greetings    int  // packets of the server so far
	serverFlags  bool // the server can do without EOF packets
	deprecateEOF bool // and so it does
	prepared     map[uint32]string

	// Of the answer under way:
	command  byte
	query    string
	phase    mysqlPhase
	left     int // definitions until the next phase
	sections int // further lists of definitions, of a prepared statement
}

type mysqlPhase int

const (
	first       mysqlPhase = iota // OK, ERR, or how many columns follow
	definitions                   // of columns
	endOfDefinitions
	rows
)

const (
	comQuit, comInitDB, comQuery = 0x01, 0x02, 0x03
	comPrepare, comExecute       = 0x16, 0x17
	comLongData, comCloseStmt    = 0x18, 0x19

	mysqlHeader        = 4
	moreResults        = 0x0008
	clientDeprecateEOF = 1 << 24
)

func (*mysqlWire) readRequest(from *bufio.Reader) ([]byte, error) { return readPacket(from) }
func (*mysqlWire) readReply(from *bufio.Reader) ([]byte, error)   { return readPacket(from) }

func readPacket(from *bufio.Reader) (raw []byte, err error) {
	for {
		at := len(raw)
		if raw, err = readN(from, raw, mysqlHeader); err != nil {
			return nil, err
		}
		n := uint24(raw[at:])
		if raw, err = readN(from, raw, n); err != nil {
			return nil, err
		}
		if n < 1<<24-1 {
			return raw, nil
		}
	}
}

func (w *mysqlWire) ready() bool { return w.loggedIn }

func (w *mysqlWire) greeted(message []byte) {
	body := message[mysqlHeader:]
	w.greetings++
	if len(body) == 0 {
		return
	}
	if w.greetings == 1 && body[0] != 0xff {
		_, rest := cString(body[1:])
		// connection id 4, scramble 8, filler 1, lower flags 2, charset 1, status 2, upper flags 2
		if len(rest) >= 20 {
			w.serverFlags = uint32(binary.LittleEndian.Uint16(rest[18:]))<<16&clientDeprecateEOF != 0
		}
		return
	}
	w.loggedIn = body[0] == 0x00
}

func (w *mysqlWire) next(raw []byte) request {
	body := raw[mysqlHeader:]
	if !w.loggedIn {
		if raw[3] == 1 && len(body) >= 4 {
			w.deprecateEOF = w.serverFlags && binary.LittleEndian.Uint32(body)&clientDeprecateEOF != 0
		}
		return request{raw: raw}
	}
	r := request{raw: raw, asks: true}
	if len(body) == 0 {
		return r
	}
	w.command, w.phase, w.sections = body[0], first, 0
	switch w.command {
	case comQuit, comLongData:
		r.asks = false
	case comCloseStmt:
		r.asks = false
		delete(w.prepared, binary.LittleEndian.Uint32(body[1:]))
	case comQuery, comInitDB:
		r.executes = w.command == comQuery
	case comPrepare:
		r.prepares, w.query = true, string(body[1:])
	case comExecute:
		r.executes = true
		if text, ok := w.prepared[binary.LittleEndian.Uint32(body[1:])]; ok {
			r.statements = []string{text}
		}
	}
	return r
}

func (w *mysqlWire) answered(message []byte) bool {
	body := message[mysqlHeader:]
	if len(body) == 0 {
		return w.phase == first
	}
	switch {
	case body[0] == 0xff && w.phase != definitions:
		return true
	case w.phase == first && w.command == comPrepare:
		return w.preparedAs(body)
	case w.phase == first:
		return w.begun(body)
	case w.phase == definitions:
		if w.left--; w.left > 0 {
			return false
		}
		return w.defined()
	case w.phase == endOfDefinitions:
		return w.listed()
	case body[0] == 0xfe && len(message) < 1<<24: // the end of the rows
		return w.ended(body)
	}
	return false
}

// begun reads the first packet of an answer to anything but a COM_STMT_PREPARE.
func (w *mysqlWire) begun(body []byte) bool {
	if w.command != comQuery && w.command != comExecute {
		return true // COM_PING and the like have one packet
	}
	switch body[0] {
	case 0x00:
		return w.ended(body)
	case 0xfb: // LOCAL INFILE
		return true
	}
	n, _ := lengthEncoded(body)
	w.phase, w.left = definitions, int(n)
	return false
}

// preparedAs reads the first packet of an answer to a COM_STMT_PREPARE.
func (w *mysqlWire) preparedAs(body []byte) bool {
	if len(body) < 9 {
		return true
	}
	w.prepared[binary.LittleEndian.Uint32(body[1:])] = w.query
	columns, params := int(binary.LittleEndian.Uint16(body[5:])), int(binary.LittleEndian.Uint16(body[7:]))
	if params == 0 {
		params, columns = columns, 0
	}
	w.phase, w.left, w.sections = definitions, params, columns
	return w.left == 0
}

func (w *mysqlWire) defined() bool {
	if !w.deprecateEOF {
		w.phase = endOfDefinitions
		return false
	}
	return w.listed()
}

// listed is what comes after a list of definitions.
func (w *mysqlWire) listed() bool {
	if w.command != comPrepare {
		w.phase = rows
		return false
	}
	w.phase, w.left, w.sections = definitions, w.sections, 0
	return w.left == 0
}

// ended reads an OK or EOF packet: another result may follow.
func (w *mysqlWire) ended(body []byte) bool {
	status := body[1:]
	if body[0] == 0xfe && len(body) < 9 && !w.deprecateEOF {
		status = status[2:] // after the warnings
	} else {
		_, n := lengthEncoded(status)
		_, m := lengthEncoded(status[n:])
		status = status[n+m:]
	}
	if len(status) >= 2 && binary.LittleEndian.Uint16(status)&moreResults != 0 {
		w.phase = first
		return false
	}
	return true
}

// lengthEncoded returns a number and how many bytes it has.
func lengthEncoded(b []byte) (n uint64, size int) {
	size = 1
	if len(b) > 0 {
		switch b[0] {
		case 0xfc:
			size = 3
		case 0xfd:
			size = 4
		case 0xfe:
			size = 9
		default:
			return uint64(b[0]), min(size, len(b))
		}
	}
	if len(b) < size {
		return 0, len(b)
	}
	for i := size - 1; i > 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n, size
}

func (w *mysqlWire) refusal(_ []byte, f Fault) ([]byte, bool) {
	code, _ := strconv.Atoi(f.Code)
	state := "HY000"
	if code == 1213 {
		state = "40001"
	}
	body := append([]byte{0xff, byte(code), byte(code >> 8)}, "#"+state+f.Text...)
	n := len(body)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), 1}, body...), false
}

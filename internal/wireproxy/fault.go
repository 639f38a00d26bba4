package wireproxy

import (
	"bytes"
	"maps"
)

// Cut is where an exchange breaks. The zero Cut is none.
type Cut int

// The cuts.
const (
	// BeforeRequest: nothing of the request reaches the server.
	BeforeRequest Cut = iota + 1
	// HalfRequest: the server gets the first half of it, then the end of the
	// connection.
	HalfRequest
	// AfterRequest: the server gets all of it, and the client the end of the
	// connection at once. The effect may come later than the client's repeat.
	AfterRequest
	// EffectThenCut: when the server has answered in full, the client gets the end
	// of the connection and no byte of the answer.
	EffectThenCut
	// HalfReply: the same, after half of the answer's bytes.
	HalfReply
	// Reset: the same as EffectThenCut, with a TCP reset instead of an orderly end.
	Reset
	// Stall: when the server has answered in full, the client gets nothing, on a
	// connection that stays open until the client gives it up.
	Stall
	// ErrorReply: when the server has answered in full, the client gets an error
	// packet instead, Fault.Code and Fault.Text. The connection goes on, but for the
	// codes 57P01 to 57P03 of Postgres, which end it.
	ErrorReply
)

// Cuts are all of them.
func Cuts() []Cut {
	return []Cut{BeforeRequest, HalfRequest, AfterRequest, EffectThenCut, HalfReply, Reset, Stall, ErrorReply}
}

// String says what is done.
func (c Cut) String() string {
	names := [...]string{"none", "before the request", "half a request", "after the request", "effect then cut",
		"half a reply", "effect then reset", "effect then stall", "effect then error"}
	if c < 0 || int(c) >= len(names) {
		return "Cut(?)"
	}
	return names[c]
}

// Fault breaks one exchange.
type Fault struct {
	Cut Cut
	// Needle is part of the request's bytes, or of the text of a statement that it
	// executes. "" is part of all.
	Needle string
	// Skip is how many requests with the needle are let through before.
	Skip int
	// Prepare has the fault meet requests too that only prepare a statement.
	Prepare bool
	// Code and Text of an ErrorReply: "1213", "40001" or "READONLY". MySQL's
	// SQLSTATE is 40001 with 1213, else HY000.
	Code, Text string
}

// Arm has the fault break the next exchange that it matches. Several may be armed:
// the first of them that matches is used up.
func (p *Proxy) Arm(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, f)
}

// Disarm takes the armed faults back and returns how many weren't used.
func (p *Proxy) Disarm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.armed)
	p.armed = nil
	return n
}

// Each asks choose about every exchange that executes something and meets no armed
// fault; a Fault without a Cut lets it pass. nil ends that. It may be called from
// several connections at once. Needle, Skip and Prepare mean nothing here.
func (p *Proxy) Each(choose func(request []byte) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose = choose
}

// Injected returns how many exchanges were broken so far, by cut.
func (p *Proxy) Injected() map[Cut]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.injected)
}

// Exchanges returns how many requests have been seen that execute something.
func (p *Proxy) Exchanges() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exchanges
}

// fault returns what is to happen to a request.
func (p *Proxy) fault(r request) Fault {
	p.mu.Lock()
	if r.executes {
		p.exchanges++
	}
	for i := range p.armed {
		f := &p.armed[i]
		if !r.executes && !(f.Prepare && r.prepares) || !r.contains(f.Needle) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		found := *f
		p.armed = append(p.armed[:i], p.armed[i+1:]...)
		p.mu.Unlock()
		return found
	}
	choose := p.choose
	p.mu.Unlock()
	if choose == nil || !r.executes {
		return Fault{}
	}
	return choose(r.raw)
}

func (p *Proxy) count(c Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injected[c]++
}

func (r request) contains(needle string) bool {
	if bytes.Contains(r.raw, []byte(needle)) {
		return true
	}
	for _, s := range r.statements {
		if bytes.Contains([]byte(s), []byte(needle)) {
			return true
		}
	}
	return false
}

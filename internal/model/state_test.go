package model

import (
	"cmp"
	"slices"
)

const workers, maxTasks, maxLate = 2, 2, 2

// Times, in ticks.
const (
	lease  = 2
	margin = 1         // a handler is cancelled so long before its lease ends
	grace  = 1         // others leave a lease alone for so long after its end
	oldest = lease + 1 // a claim or an extension on its way: then the lease that it asks for is over
)

// holder names a call of Claim; 0 is nobody.
type holder int8

type status int8

const (
	pending status = iota
	running
	finished
)

// row is a task in the store; its token is the newest by definition.
type row struct {
	status  status
	holder  holder
	lease   int8 // its end, in ticks from now
	retries int8
	dones   int8 // completions recorded
	reused  bool // its id was used again after its deletion
	low     int8 // by how much its token is below the newest of the rows before it
}

type kind int8

const (
	none kind = iota
	claims
	extends
	settles
)

type outcome int8

const (
	done outcome = iota
	retry
	released
)

// msg is a call on its way to the store.
type msg struct {
	kind    kind
	task    int8
	holder  holder
	older   int8 // 1: under a token that isn't the newest
	sent    int8 // in ticks from now: 0 or below
	outcome outcome
}

type where int8

const (
	flying where = iota
	landed       // took effect, the reply is on its way
	lost         // never takes effect
)

type answer int8

const (
	ok      answer = iota // granted, extended, settled
	held                  // somebody has a lease
	gone                  // the task is finished
	refused               // the grant isn't the newest
)

// call is a call that its sender waits for.
type call struct {
	msg    msg
	where  where
	answer answer
}

type phase int8

const (
	idle phase = iota
	asking
	handling // the handler runs
	stopped  // the handler was cancelled and has returned, or never started
	settling
)

// hand is what a worker has to do with a task.
type hand struct {
	phase    phase
	holder   holder
	older    int8 // 1: its token isn't the newest
	deadline int8 // of the handler, in ticks from now
	call     call
}

// state is one state of the whole. Unused places are zero.
type state struct {
	rows   [maxTasks]row
	index  [maxTasks]int8 // 0: no entry; else 1 + ticks until it is due
	hands  [workers][maxTasks]hand
	paused [workers]bool
	late   [maxLate]msg // calls that nobody waits for any more; used ones first
	faults int8         // left, where they are bounded
}

func (s *state) lateCount() int {
	n := 0
	for n < maxLate && s.late[n].kind != none {
		n++
	}
	return n
}

// eachHolder calls f with each place where a holder's name stands, in a fixed order.
func (s *state) eachHolder(f func(*holder)) {
	for t := range s.rows {
		f(&s.rows[t].holder)
	}
	for w := range s.hands {
		for t := range s.hands[w] {
			f(&s.hands[w][t].holder)
			f(&s.hands[w][t].call.msg.holder)
		}
	}
	for i := range s.late {
		f(&s.late[i].holder)
	}
}

// fresh returns a name that nobody has.
func (s *state) fresh() holder {
	var used [64]bool
	s.eachHolder(func(h *holder) { used[*h] = true })
	for h := holder(1); ; h++ {
		if !used[h] {
			return h
		}
	}
}

// normal makes states the same that differ only in names, in the order of messages
// and in what can't make a difference any more.
func (s *state) normal() {
	s.forget()
	slices.SortFunc(s.late[:s.lateCount()], func(a, b msg) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.task, b.task), cmp.Compare(a.sent, b.sent),
			cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.older, b.older), cmp.Compare(a.holder, b.holder))
	})
	var names [64]holder
	next := holder(1)
	s.eachHolder(func(h *holder) {
		if *h == 0 {
			return
		}
		if names[*h] == 0 {
			names[*h] = next
			next++
		}
		*h = names[*h]
	})
}

// forget drops what can't make a difference any more.
func (s *state) forget() {
	var age [maxTasks]int8 // of the oldest claim on its way
	for i := range s.late[:s.lateCount()] {
		m := &s.late[i]
		m.forget()
		if m.kind == claims {
			age[m.task] = max(age[m.task], -m.sent)
		}
	}
	for w := range s.hands {
		busy := false
		for t := range s.hands[w] {
			h := &s.hands[w][t]
			h.forget()
			busy = busy || h.phase == handling
			if h.phase == asking {
				age[t] = max(age[t], -h.call.msg.sent)
			}
		}
		s.paused[w] = s.paused[w] && busy // who has no deadline may take its time anyhow
	}
	for t := range s.rows {
		if r := &s.rows[t]; r.status == running {
			r.lease = max(r.lease, -grace-1-age[t]) // over for every claim
		} else {
			r.lease = 0
		}
	}
}

func (m *msg) forget() {
	switch {
	case m.kind == settles:
		m.sent = 0
	case m.kind == extends && m.older == 1:
		m.sent = 0
	}
	if m.older == 1 { // it is refused, whoever the holder was
		m.holder = 0
	}
}

func (h *hand) forget() {
	if h.older == 1 && h.phase != asking { // as one that asks may ask again
		h.holder = 0
	}
	c := &h.call
	c.msg.forget()
	if c.where == landed && c.msg.kind == extends { // it isn't sent again
		c.msg.holder, c.msg.older = 0, 0
		if c.answer != ok {
			c.msg.sent = 0
		}
	}
}

// granted marks all tokens of a task as older ones.
func (s *state) granted(t int8) {
	for w := range s.hands {
		h := &s.hands[w][t]
		if h.phase > asking || h.phase == asking && h.call.where == landed && h.call.answer == ok {
			h.older = 1
		}
		if h.call.msg.kind == extends || h.call.msg.kind == settles {
			h.call.msg.older = 1
		}
	}
	for i := range s.late {
		if m := &s.late[i]; m.task == t && (m.kind == extends || m.kind == settles) {
			m.older = 1
		}
	}
}

// ended tells whether all is over: the end that must stay within reach.
func (s *state) ended(tasks int) bool {
	for t := range tasks {
		if s.rows[t].status != finished || s.index[t] != 0 {
			return false
		}
		for w := range s.hands {
			if s.hands[w][t].phase != idle {
				return false
			}
		}
	}
	return s.lateCount() == 0
}

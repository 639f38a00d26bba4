package model

// handSteps are the steps of one worker with one task.
func (y *system) handSteps(s *state, w, t int8, emit emit) {
	h := s.hands[w][t]
	if h.call.msg.kind != none && h.call.where == flying {
		to := *s
		a, broken := y.rules.apply(&to, h.call.msg)
		c := &to.hands[w][t].call
		c.where, c.answer = landed, a
		if h.call.msg.kind == claims && a == ok {
			to.hands[w][t].older = 0
		}
		emit(action{what: landNames[h.call.msg.kind], w: w, t: t}, to, broken)
	}
	if s.paused[w] {
		return
	}
	switch h.phase {
	case idle:
		y.take(s, w, t, emit)
	case asking:
		y.asking(s, w, t, emit)
	case handling:
		y.handling(s, w, t, emit)
	case stopped: // its late completion counts, if nobody was granted the task since
		y.send(s, w, t, settles, done, "settles as done, late", emit)
		y.send(s, w, t, settles, released, "gives it back", emit)
	case settling:
		y.settling(s, w, t, emit)
	}
}

var landNames = [...]string{claims: "its claim takes effect", extends: "its extension takes effect", settles: "its settlement takes effect"}

// take takes the entry from the index and claims.
func (y *system) take(s *state, w, t int8, emit emit) {
	if s.index[t] != 1 || y.single && s.hands[w] != ([maxTasks]hand{}) {
		return
	}
	to := *s
	to.index[t] = 1 + lease + grace
	who := to.fresh()
	to.hands[w][t] = hand{phase: asking, holder: who, call: call{msg: msg{kind: claims, task: t, holder: who}}}
	emit(action{what: "takes it from the index and claims", w: w, t: t}, to, "")
}

// asking is a claim that waits for its answer.
func (y *system) asking(s *state, w, t int8, emit emit) {
	h := s.hands[w][t]
	if h.call.where == landed {
		to := *s
		n := &to.hands[w][t]
		what := "hears that it is granted"
		switch h.call.answer {
		case ok:
			n.call = call{}
			if n.deadline = h.call.msg.sent + lease - y.rules.margin(); n.deadline > 0 || y.rules.noCancel {
				n.phase = handling
			} else {
				n.phase, n.deadline = stopped, 0
			}
		case gone:
			*n = hand{}
			to.index[t] = 0
			what = "hears that it is gone"
		default:
			*n = hand{}
			what = "hears that it is held"
		}
		emit(action{what: what, w: w, t: t}, to, "")
	}
	// No answer comes. The same claim again, with the same arguments; or not.
	again := *s
	again.hands[w][t].older = 0
	c := &again.hands[w][t].call
	c.where, c.answer = flying, ok
	if c.msg.sent > -oldest {
		y.unheard(&again, h.call, action{what: "claims again, after no answer", w: w, t: t, fault: true}, emit)
	}
	up := *s
	up.hands[w][t] = hand{}
	y.unheard(&up, h.call, action{what: "gives the claim up, after no answer", w: w, t: t, fault: h.call.where != lost}, emit)
}

// unheard tells of a step after which nobody waits for a call: it has landed and
// the reply is lost, or it never lands, or it lands late.
func (y *system) unheard(to *state, c call, a action, emit emit) {
	emit(a, *to, "")
	if late := *to; y.leaveBehind(&late, c) {
		a.fault = true
		a.what = unheardNames[a.what]
		emit(a, late, "")
	}
}

var unheardNames = map[string]string{
	"claims again, after no answer":       "claims again; the first message is still under way",
	"gives the claim up, after no answer": "gives the claim up; its message is still under way",
	"hears nothing of its extension":      "hears nothing of its extension, which is still under way",
	"settles again, after no answer":      "settles again; the first message is still under way",
	"cancels its handler at the deadline": "cancels its handler at the deadline; an extension is still under way",
}

// handling is a handler at work.
func (y *system) handling(s *state, w, t int8, emit emit) {
	h := s.hands[w][t]
	if h.deadline <= 0 && !y.rules.noCancel {
		to := *s
		y.cancel(&to.hands[w][t])
		y.unheard(&to, h.call, action{what: "cancels its handler at the deadline", w: w, t: t}, emit)
		return
	}
	if h.call.msg.kind == none {
		if !y.brief {
			y.send(s, w, t, extends, done, "extends its lease", emit)
		}
		y.send(s, w, t, settles, done, "is finished, and settles as done", emit)
		if s.rows[t].retries < y.retries {
			y.send(s, w, t, settles, retry, "has failed, and settles for a retry", emit)
		}
		return
	}
	to := *s
	to.hands[w][t].call = call{}
	if h.call.where == landed {
		n := &to.hands[w][t]
		if h.call.answer == ok {
			n.deadline = max(n.deadline, h.call.msg.sent+lease-y.rules.margin())
			emit(action{what: "hears that its lease is extended", w: w, t: t}, to, "")
		} else {
			y.cancel(n)
			emit(action{what: "hears that its lease is lost, and cancels its handler", w: w, t: t}, to, "")
		}
	}
	to = *s
	to.hands[w][t].call = call{}
	y.unheard(&to, h.call, action{what: "hears nothing of its extension", w: w, t: t, fault: h.call.where != lost}, emit)
}

// send sends a call under the worker's grant.
func (y *system) send(s *state, w, t int8, k kind, o outcome, what string, emit emit) {
	to := *s
	h := &to.hands[w][t]
	h.call = call{msg: msg{kind: k, task: t, holder: h.holder, older: h.older, outcome: o}}
	if k == settles {
		h.phase, h.deadline = settling, 0
	}
	emit(action{what: what, w: w, t: t}, to, "")
}

// settling is a settlement that waits for its answer; it is repeated until there is
// one.
func (y *system) settling(s *state, w, t int8, emit emit) {
	h := s.hands[w][t]
	if h.call.where == landed {
		to := *s
		to.hands[w][t] = hand{}
		switch {
		case h.call.answer != ok:
			emit(action{what: "hears that its settlement is refused", w: w, t: t}, to, "")
		case h.call.msg.outcome == done:
			emit(action{what: "hears that it is settled; the index keeps the entry", w: w, t: t, fault: true}, to, "")
			to.index[t] = 0
			emit(action{what: "hears that it is settled, and removes the entry", w: w, t: t}, to, "")
		default:
			to.index[t] = 1
			emit(action{what: "hears that it is settled, and puts the entry back", w: w, t: t}, to, "")
		}
	}
	to := *s
	c := &to.hands[w][t].call
	c.where, c.answer, c.msg.sent = flying, ok, 0
	y.unheard(&to, h.call, action{what: "settles again, after no answer", w: w, t: t, fault: h.call.where != lost}, emit)
}

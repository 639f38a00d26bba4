package model

import "slices"

// action is one step from a state to the next.
type action struct {
	what  string // constant, so that an action costs no memory
	w, t  int8
	fault bool
}

// step is what the search is told of: an action, where it leads, and the promise that
// it breaks.
type emit func(a action, to state, broken string)

// system says how large the model is.
type system struct {
	rules   rules
	tasks   int
	late    int  // messages under way that nobody waits for, at most
	retries int8 // of a task
	reuses  bool // an id is used again after its row was deleted, once
	bounded bool // faults are, by state.faults
	single  bool // a worker has one task at a time in hand
	brief   bool // leases aren't extended
}

// next tells of all steps from s.
func (y *system) next(s *state, tell emit) {
	emit := func(a action, to state, broken string) {
		if a.fault && y.bounded {
			if s.faults == 0 {
				return
			}
			to.faults--
		}
		if broken == "" {
			broken = y.overlap(&to)
		}
		tell(a, to, broken)
	}
	y.tick(s, emit)
	for t := range int8(y.tasks) {
		y.indexSteps(s, t, emit)
		if r := s.rows[t]; y.reuses && r.status == finished && !r.reused {
			to := *s
			y.rules.reuse(&to, t)
			emit(action{what: "its row is deleted, and the id inserted again", t: t}, to, "")
		}
		for w := range int8(workers) {
			y.handSteps(s, w, t, emit)
		}
	}
	for w := range int8(workers) {
		y.workerSteps(s, w, emit)
	}
	for i := range s.lateCount() {
		m := s.late[i]
		to := *s
		copy(to.late[i:], to.late[i+1:])
		to.late[maxLate-1] = msg{}
		emit(action{what: "a late message is lost", t: m.task}, to, "")
		_, broken := y.rules.apply(&to, m)
		emit(action{what: lateNames[m.kind], t: m.task}, to, broken)
	}
}

var lateNames = [...]string{claims: "a late claim takes effect", extends: "a late extension takes effect", settles: "a late settlement takes effect"}

// overlap finds two workers that run the same task, neither of them paused.
func (y *system) overlap(s *state) string {
	for t := range y.tasks {
		if s.hands[0][t].phase == handling && s.hands[1][t].phase == handling && !s.paused[0] && !s.paused[1] {
			return "two workers that aren't paused run the same task"
		}
	}
	return ""
}

func (y *system) tick(s *state, emit emit) {
	to := *s
	for t := range y.tasks {
		r := &to.rows[t]
		if r.status == running {
			r.lease--
		}
		if to.index[t] > 1 {
			to.index[t]--
		}
		for w := range to.hands {
			h := &to.hands[w][t]
			if h.phase == handling {
				if h.deadline <= 0 && !s.paused[w] && !y.rules.noCancel {
					return // it has to be cancelled first
				}
				h.deadline = max(h.deadline-1, -1)
			}
			if c := &h.call; c.msg.kind == claims || c.msg.kind == extends {
				if c.msg.sent--; c.msg.sent < -oldest {
					c.msg.sent = -oldest
					if c.where == flying {
						c.where = lost
					}
				}
			}
		}
	}
	kept := 0
	for _, m := range s.late[:s.lateCount()] {
		if m.kind != settles {
			m.sent--
		}
		if m.sent >= -oldest {
			to.late[kept] = m
			kept++
		}
	}
	clear(to.late[kept:])
	emit(action{what: "a tick passes"}, to, "")
}

// indexSteps are the steps of the index and of sweeps.
func (y *system) indexSteps(s *state, t int8, emit emit) {
	if s.index[t] != 0 {
		to := *s
		to.index[t] = 0
		emit(action{what: "the index loses the entry", t: t, fault: true}, to, "")
	}
	if s.index[t] == 1 {
		return
	}
	to := *s
	to.index[t] = 1
	emit(action{what: "an old entry is back in the index", t: t, fault: true}, to, "")
	r := s.rows[t]
	if !y.rules.noSweep && (r.status == pending || r.status == running && r.lease < -y.rules.grace()) {
		emit(action{what: "a sweep adds the task to the index", t: t}, to, "")
	}
}

// workerSteps are what happens to a worker as a whole.
func (y *system) workerSteps(s *state, w int8, emit emit) {
	if s.paused[w] {
		to := *s
		to.paused[w] = false
		for t := range to.hands[w] { // a process that goes on finds its deadlines passed
			if h := &to.hands[w][t]; h.phase == handling && h.deadline <= 0 && !y.rules.noCancel {
				y.cancel(h)
			}
		}
		emit(action{what: "goes on", w: w}, to, "")
	} else if slices.ContainsFunc(s.hands[w][:], func(h hand) bool { return h.phase == handling }) {
		to := *s
		to.paused[w] = true
		emit(action{what: "is paused", w: w, fault: true}, to, "")
	}
	if s.hands[w] == ([maxTasks]hand{}) {
		return
	}
	// It crashes, and its like starts at once. What it has sent may still take effect.
	to := *s
	to.hands[w], to.paused[w] = [maxTasks]hand{}, false
	emit(action{what: "crashes", w: w, fault: true}, to, "")
	for t := range y.tasks {
		if h := s.hands[w][t]; y.leaveBehind(&to, h.call) {
			emit(action{what: "crashes, and a message of it is still under way", w: w, t: int8(t), fault: true}, to, "")
		}
	}
}

// leaveBehind makes a call that hasn't landed a late message, where there is room.
func (y *system) leaveBehind(s *state, c call) bool {
	n := s.lateCount()
	if c.msg.kind == none || c.where != flying || n >= y.late {
		return false
	}
	s.late[n] = c.msg
	return true
}

// cancel is the handler's end by its deadline. A call for the lease goes on unheard.
func (y *system) cancel(h *hand) {
	h.phase, h.deadline = stopped, 0
	h.call = call{}
}

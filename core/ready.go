package core

// readyJobs are granted jobs without a goroutine yet. As long as there are some,
// one goroutine is on its way to take the first, and it starts the next before it
// begins: handlers that block each have a goroutine of their own, and those that
// return at once share a few, whose stacks have grown already.
type readyJobs struct {
	list   []*Job
	coming bool // a goroutine was started and has not taken its first job yet
}

// push adds jobs. It tells whether to start a goroutine.
func (r *readyJobs) push(jobs []*Job) bool {
	r.list = append(r.list, jobs...)
	return r.call()
}

// pop takes the next job, nil if there is none, for a goroutine that has just come
// (first) or has done its last job. It tells whether to start another goroutine.
func (r *readyJobs) pop(first bool) (j *Job, more bool) {
	if first {
		r.coming = false
	}
	if len(r.list) == 0 {
		r.list = nil
		return nil, false
	}
	j, r.list[0], r.list = r.list[0], nil, r.list[1:]
	return j, r.call()
}

func (r *readyJobs) call() bool {
	if r.coming || len(r.list) == 0 {
		return false
	}
	r.coming = true
	return true
}

// start runs granted jobs.
func (e *engine) start(jobs []*Job) {
	e.mu.Lock()
	more := e.ready.push(jobs)
	e.mu.Unlock()
	if more {
		e.jobs.Go(e.workOff)
	}
}

// workOff runs ready jobs until there are none.
func (e *engine) workOff() {
	for first := true; ; first = false {
		e.mu.Lock()
		j, more := e.ready.pop(first)
		e.mu.Unlock()
		if more {
			e.jobs.Go(e.workOff)
		}
		if j == nil {
			return
		}
		e.work(j)
	}
}

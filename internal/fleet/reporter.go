package fleet

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// reporter writes a worker's events.
type reporter struct {
	ends bool

	mu  sync.Mutex
	out *json.Encoder
}

func (r *reporter) say(e Event) {
	e.At = time.Now().UnixMicro()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(e) // without its reader the worker is about to be ended
}

func (r *reporter) job(what string, job *core.Job, lost bool) {
	r.say(Event{
		What: what, ID: job.Grant.ID, Token: job.Grant.Token, Attempt: job.Attempt, Crashes: job.Crashes, Failures: job.Failures(),
		Due: job.Task.Due.UnixMilli(), Lost: lost,
	})
}

func observer(r *reporter) core.Observer {
	return core.Observer{
		Settled: func(s core.Settlement, err error) {
			e := Event{What: Settled, ID: s.Grant.ID, Token: s.Grant.Token, Lost: errors.Is(err, core.ErrLeaseLost), Text: s.Outcome.String()}
			if s.Outcome != core.Done {
				e.What = GivenBack
			}
			if err != nil && !e.Lost {
				e.Text = err.Error()
			}
			r.say(e)
		},
		LeaseLost: func(job *core.Job, _ error) { r.job(LeaseLost, job, true) },
		Failed:    func(op string, err error) { r.say(Event{What: Failed, Text: op + ": " + err.Error()}) },
	}
}

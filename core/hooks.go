package core

import "time"

// hooks calls the funcs of an Observer that are there, each under the guard.
type hooks struct {
	Observer
	guard *guard
}

func (o *hooks) claimed(s ClaimStats) {
	if o.Claimed != nil {
		defer o.guard.catch("Observer.Claimed")
		o.Claimed(s)
	}
}

func (o *hooks) refused(id ID, err error) {
	if o.Refused != nil {
		defer o.guard.catch("Observer.Refused")
		o.Refused(id, err)
	}
}

func (o *hooks) started(j *Job, lateness time.Duration) {
	if o.Started != nil {
		defer o.guard.catch("Observer.Started")
		o.Started(j, lateness)
	}
}

func (o *hooks) returned(j *Job, took time.Duration, err error) {
	if o.Returned != nil {
		defer o.guard.catch("Observer.Returned")
		o.Returned(j, took, err)
	}
}

func (o *hooks) settled(s Settlement, err error) {
	if o.Settled != nil {
		defer o.guard.catch("Observer.Settled")
		o.Settled(s, err)
	}
}

func (o *hooks) leaseLost(j *Job, cause error) {
	if o.LeaseLost != nil {
		defer o.guard.catch("Observer.LeaseLost")
		o.LeaseLost(j, cause)
	}
}

func (o *hooks) notIndexed(n int, err error) {
	if o.NotIndexed != nil {
		defer o.guard.catch("Observer.NotIndexed")
		o.NotIndexed(n, err)
	}
}

func (o *hooks) swept(rows, direct int) {
	if o.Swept != nil {
		defer o.guard.catch("Observer.Swept")
		o.Swept(rows, direct)
	}
}

func (o *hooks) indexLost(was, now string) {
	if o.IndexLost != nil {
		defer o.guard.catch("Observer.IndexLost")
		o.IndexLost(was, now)
	}
}

func (o *hooks) failed(op string, err error) {
	if o.Failed != nil {
		defer o.guard.catch("Observer.Failed")
		o.Failed(op, err)
	}
}

func (o *hooks) health(h Health) {
	if o.Health != nil {
		defer o.guard.catch("Observer.Health")
		o.Health(h)
	}
}

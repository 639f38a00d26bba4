package claim

import (
	"cmp"
	"time"

	"github.com/dueclaim/dueclaim/core"
)

// Status is the state of a task as the managed table spells it.
type Status string

// The states. Finished ones (done, dead, cancelled) are no longer live: their
// id may be used again.
const (
	Pending   Status = "pending"
	Running   Status = "running"
	DoneState Status = "done"
	DeadState Status = "dead"
	Cancelled Status = "cancelled"
)

// Live tells whether a task in this state still holds its id.
func (s Status) Live() bool { return s == Pending || s == Running }

// Row is a task's row as it was read; see the package comment for the columns.
// Times are milliseconds since 1970. Adapters read only the columns that the
// method which they call next needs.
type Row struct {
	ID          core.ID
	Status      Status
	Due         int64 // 0 where the column is NULL
	Planned     int64
	Token       int64
	Holder      string
	LeaseUntil  int64
	Attempts    int
	Crashes     int
	MaxAttempts int
	Kind        string
	Payload     []byte
	Meta        []byte
	CallID      string
}

// Claimed is the verdict for a row that was read back after the claiming
// statement ran: Granted where the row is now running under lease.Holder, else
// the reason why not. It needs all columns but CallID for a granted row, and
// Status, Due, Holder and LeaseUntil otherwise.
func (r Row) Claimed(lease core.Lease) core.Claimed {
	c := core.Claimed{ID: r.ID}
	switch {
	case !r.Status.Live():
		c.Verdict = core.Gone
	case r.Status == Running && r.Holder == lease.Holder:
		c.Verdict = core.Granted
		c.At = Time(r.LeaseUntil)
		c.Grant = core.Grant{ID: r.ID, Token: r.Token, Holder: r.Holder}
		c.Task = core.Task{
			ID: r.ID, Kind: r.Kind, Payload: r.Payload, Meta: r.Meta,
			Due: Time(r.Planned), MaxAttempts: r.MaxAttempts,
		}
		c.Attempt, c.Crashes = r.Attempts, r.Crashes
		c.NotBefore = Time(r.Due)
	case r.Status == Running && r.LeaseUntil >= lease.Now.UnixMilli():
		c.Verdict, c.At = core.Held, Time(r.LeaseUntil)
	case r.notBefore() > lease.DueBy.UnixMilli():
		c.Verdict, c.At = core.NotDue, Time(r.notBefore())
	default:
		c.Verdict = core.Refused
	}
	return c
}

// notBefore is when the row may be claimed. A user's table keeps the end of a
// back-off as a pending row's lease; the managed one has 0 there.
func (r Row) notBefore() int64 {
	if r.Status == Pending {
		return max(r.Due, r.LeaseUntil)
	}
	return r.Due
}

// Gone is the verdict for an id without a row.
func Gone(id core.ID) core.Claimed { return core.Claimed{ID: id, Verdict: core.Gone} }

// Extended says what it means that an Extend changed nothing: nil where the
// lease reaches until already, ErrLeaseLost where it is another's, ErrBusy where
// the row was locked. It needs Status, Token, Holder and LeaseUntil.
func (r Row) Extended(g core.Grant, until time.Time) error {
	switch {
	case !r.heldBy(g) || r.Status != Running:
		return core.ErrLeaseLost
	case r.LeaseUntil >= until.UnixMilli():
		return nil
	default:
		return core.ErrBusy
	}
}

// Settled says what it means that a Settle changed nothing: nil where this
// holder settled the task before, ErrLeaseLost where the newest grant is
// another's or the task was cancelled, ErrBusy where the row was locked. It
// needs Status, Token and Holder.
func (r Row) Settled(g core.Grant) error {
	switch {
	case !r.heldBy(g) || r.Status == Cancelled:
		return core.ErrLeaseLost
	case r.Status == Running:
		return core.ErrBusy
	default:
		return nil
	}
}

// SettledTx is Settled for a SettleTx: also what an earlier call settled under this
// very grant is ErrLeaseLost. The user's other writes were committed with that
// one, and would be made a second time with this one.
func (r Row) SettledTx(g core.Grant) error {
	return cmp.Or(r.Settled(g), core.ErrLeaseLost)
}

func (r Row) heldBy(g core.Grant) bool { return r.Token == g.Token && r.Holder == g.Holder }

// Inserted says what it means that an Insert changed nothing: nil where this
// very call made the row, ErrExists where the id's task is live, ErrBusy where
// the row was locked. It needs Status and CallID.
func (r Row) Inserted(call core.Call) error {
	switch {
	case r.CallID == call.ID:
		return nil
	case r.Status.Live():
		return core.ErrExists
	default:
		return core.ErrBusy
	}
}

// Fate is what Cancel answers for a row read back after the cancelling statement
// ran. ok is false where the row is still live because it was locked. It needs
// Status and LeaseUntil.
func (r Row) Fate() (fate core.Fate, ok bool) {
	switch {
	case r.Status == Cancelled && r.LeaseUntil > 0:
		return core.WasRunning, true
	case r.Status == Cancelled:
		return core.Cancelled, true
	case r.Status.Live():
		return 0, false
	default:
		return core.Finished, true
	}
}

// Rescheduled says what it means that a Reschedule changed nothing: nil where
// the task is due at To already, else ErrNotPending, ErrMoved or, where the row
// was locked, ErrBusy. It needs Status and Due.
func (r Row) Rescheduled(m core.Move) error {
	switch {
	case r.Status != Pending:
		return core.ErrNotPending
	case r.Due == m.To.UnixMilli():
		return nil
	case !m.From.IsZero() && r.Due != m.From.UnixMilli():
		return core.ErrMoved
	default:
		return core.ErrBusy
	}
}

// Time converts a column's milliseconds; 0 is the zero Time only where a caller
// treats it so, here it is 1970.
func Time(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

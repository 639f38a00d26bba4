package main

import (
	"time"

	"github.com/dueclaim/dueclaim/claim"
)

// mode is what dueclaim may use of the table of orders, which is
//
//	CREATE TABLE orders (
//	  order_id   VARCHAR(50) PRIMARY KEY,
//	  status     ENUM('pending','processing','cancelled','completed') NOT NULL DEFAULT 'pending',
//	  created_at DATETIME NOT NULL,
//	  updated_at DATETIME DEFAULT NULL
//	);
//
// In each mode an order is cancelled exactly once, and one that is paid never. The
// modes differ in what a crash or a lost index costs, and in how often a handler may
// be started in vain; Verify says so at the start of each run.
type mode string

const (
	// status is the table as it is. A worker claims an order by the status
	// 'processing', and updated_at is its lease. It is the default, since it needs
	// nothing of the shop.
	status mode = "status"
	// full is the table with a token, a holder and a lease's end added by the
	// statements that Suggest gives: as good as a table of tasks.
	full mode = "full"
	// transition knows no 'processing'. A claim only reads, and the handler's own
	// transaction makes the one step from 'pending' to 'cancelled'.
	transition mode = "transition"
)

// kind is the kind of the orders' tasks; the worker's handler is registered for it.
const kind = "cancel unpaid order"

// ordersTable tells dueclaim which column plays which part. An order is due delay
// after it was made.
//
// Done is 'cancelled', as that is what the work leads to. 'completed' is no state
// of dueclaim's: to it a paid order is gone, like a deleted one.
func ordersTable(m mode, name string, delay, lease time.Duration) claim.Table {
	t := claim.Table{
		Name:      name,
		ID:        claim.IDColumn{Name: "order_id"},
		State:     claim.StateColumn{Name: "status", Pending: claim.Text("pending"), Processing: claim.Text("processing"), Done: claim.Text("cancelled")},
		Due:       claim.DueTime{Base: claim.TimeColumn{Name: "created_at", Kind: claim.DateTime, Zone: time.UTC}, After: delay},
		Updated:   claim.TimeColumn{Name: "updated_at", Kind: claim.DateTime, Zone: time.UTC},
		FixedKind: kind,
	}
	switch m {
	case status:
		t.LeaseFor = lease // as core.Options.Lease, see worker.go
	case full: // the columns that Suggest adds
		t.Token, t.Holder = "dueclaim_token", "dueclaim_holder"
		t.Lease = claim.TimeColumn{Name: "dueclaim_lease", Kind: claim.UnixMilli}
		t.Attempts, t.Crashes, t.LastError = "dueclaim_attempts", "dueclaim_crashes", "dueclaim_error"
	case transition:
		t.State.Processing = claim.Value{}
	}
	return t
}

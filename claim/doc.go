// Package claim holds building blocks for claim stores on databases: checks
// and quoting of names, splitting of batches, and the verdicts that follow from
// a row as it was read back. It also has [Memory], the reference store and test
// double.
//
// # The managed table
//
// The SQL adapters keep their tasks in a table of one shape, one row a task,
// key (queue, id). All times are BIGINT milliseconds since 1970.
//
//	queue        the queue's name, compared as bytes
//	id           the task's id, compared as bytes
//	status       pending, running, done, dead or cancelled
//	due          when it may run; NULL once it is done, dead or cancelled.
//	             Indexed (queue, due, id). A claim and an extension leave it alone.
//	planned      the due time asked for by Insert, Reschedule or Retry (lateness)
//	token        the fence: rises with every grant, also across a replacement and a
//	             deletion
//	holder       the Lease.Holder of the newest grant, kept when it is settled,
//	             empty for a task that was never granted
//	lease_until  the end of the lease while running, else 0; a row cancelled under
//	             a live lease keeps it, which is how a repeat knows WasRunning
//	attempts     grants that were not released
//	crashes      those of them whose lease ran out
//	max_attempts 0: the scheduler's default
//	kind, payload, meta
//	last_error   the text of the last failure
//	call_id      Call.ID of the Insert that made (or replaced) the row
//	created_at   when it was inserted (Call.Now)
//	finished_at  when it became done, dead or cancelled, else NULL; what Purge
//	             goes by
//
// # The transitions
//
//	Insert      no row -> pending, token = clock; or done/dead/cancelled with
//	            another call_id -> pending, token = max(token+1, clock),
//	            holder empty, attempts = crashes = 0
//	Claim       pending, due <= DueBy -> running, token+1, attempts+1
//	            running, lease_until < Now, due <= DueBy -> running, token+1,
//	            attempts+1, crashes+1
//	Extend      running, token, holder -> lease_until = max(lease_until, Until)
//	Settle      running, token, holder -> done (due NULL) | dead (DeadLetter; due NULL) |
//	            pending (Retry: due = planned = Due) |
//	            pending (Released: due = Due, attempts-1); lease_until = 0
//	Cancel      pending, or running -> cancelled (due NULL); lease_until stays
//	            where running and lease_until >= now, else 0
//	Reschedule  pending, due = From (or From zero), due <> To -> due = planned = To
//	Purge       done or cancelled, finished_at < before -> no row
//
// clock is the store's own, in microseconds, as the statement reads it where it makes the
// change: Call.Now is what a producer believes, and could lie below a token that was
// given meanwhile. Insert, Claim, Cancel and Reschedule have no effect once that clock is
// past the By of their call.
//
// What a conditional statement did not change is read back, and [Row] says what
// that means.
package claim

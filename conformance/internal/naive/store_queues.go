package naive

// Neighbour returns the queue beside this one.
func (s *Store) Neighbour() *Store {
	n := NewStore(s.bug)
	n.Deletes = s.Deletes
	s.other, n.other = n, s
	return n
}

// across is for the bug of a statement that forgets which queue it is for: f works
// on the other queue's rows, by the rules otherwise.
func (s *Store) across(bug string, f func(other *Store)) {
	if s.other == nil || !s.is(bug) {
		return
	}
	s.other.mu.Lock()
	defer s.other.mu.Unlock()
	f(&Store{Deletes: s.Deletes, rows: s.other.rows, locked: s.other.locked, wrote: s.other.wrote})
}

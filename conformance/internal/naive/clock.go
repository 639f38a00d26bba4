package naive

import (
	"context"
	"time"
)

// Undated implements core.Undated: each grant and each retry of a Store has its time.
func (s *Store) Undated() bool { return s.is("undated, undeclared") }

// Clocked is a Store with a clock.
type Clocked struct {
	*Store
	ahead time.Duration
}

// NewClocked is NewStore with a clock.
func NewClocked(bug string) *Clocked { return &Clocked{Store: NewStore(bug)} }

// Peer returns a further handle on the same data.
func (s *Clocked) Peer() *Clocked {
	peer := &Clocked{Store: s.Store}
	if s.is("a clock a process") {
		peer.ahead = -time.Hour
	}
	return peer
}

// Now implements core.TimeSource.
func (s *Clocked) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx, 1); err != nil {
		return time.Time{}, err
	}
	now := time.Now().Add(s.ahead).UTC()
	if s.is("a clock of seconds") {
		now = now.Truncate(time.Second)
	}
	return now, nil
}

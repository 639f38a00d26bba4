package main

import (
	"fmt"
	"strings"
	"time"
)

// sizes are how much of everything a run measures.
type sizes struct {
	quick  bool
	rounds int

	drain int // tasks

	leadIn time.Duration // workers run before anything is scheduled
	steady time.Duration // tasks are scheduled at a steady rate for so long
	rates  []int         // a second
	ahead  time.Duration // from its scheduling to its due time
	herd   int
	herdIn time.Duration // from the beginning of the herd's scheduling to its due time

	single  int // tasks scheduled one a call
	batches int // tasks scheduled in batches

	pending    []int
	morePeers  int // pending tasks up to which the peers are measured
	head       int // tasks that are due, at each number of pending ones
	headRepeat int
	rebuild    int // pending tasks up to which the index is emptied and rebuilt
	heap       []int

	contention int
	schedulers []int

	idle time.Duration

	limit int // rows
}

// list writes numbers as a list.
func list(numbers []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ", "), "[]")
}

// usual is what the published figures come from: about 35 minutes on two cores.
func usual(rounds int, full bool) sizes {
	s := sizes{
		rounds: rounds,
		drain:  50_000,
		leadIn: time.Second, steady: 5 * time.Second, rates: []int{100, 1000, 5000}, ahead: 2 * time.Second,
		herd: 20_000, herdIn: 7 * time.Second,
		single: 40_000, batches: 100_000,
		pending: []int{10_000, 100_000, 1_000_000}, morePeers: 100_000, head: 20_000, headRepeat: 3, rebuild: 1_000_000,
		heap:       []int{10_000, 100_000, 1_000_000, 10_000_000},
		contention: 40_000, schedulers: []int{1, 2, 4, 8},
		idle:  10 * time.Second,
		limit: 100_000,
	}
	if full {
		s.pending = append(s.pending, 10_000_000)
		s.morePeers = 1_000_000
	}
	return s
}

// tiny is for a check that all of it works.
func tiny() sizes {
	return sizes{
		quick: true, rounds: 1,
		drain:  1000,
		leadIn: 200 * time.Millisecond, steady: 500 * time.Millisecond, rates: []int{100, 1000}, ahead: 500 * time.Millisecond,
		herd: 1000, herdIn: 2 * time.Second,
		single: 500, batches: 2000,
		pending: []int{1000, 5000}, morePeers: 1000, head: 500, headRepeat: 1, rebuild: 5000,
		heap:       []int{1000, 10_000},
		contention: 1000, schedulers: []int{1, 2},
		idle:  time.Second,
		limit: 4000,
	}
}

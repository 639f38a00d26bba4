package model

import (
	"fmt"
	"slices"
	"strings"
)

// graph is what a search has visited. Node 0 is the start.
type graph struct {
	sys    *system
	states []state
	ids    map[state]int32
	parent []int32
	by     []action  // that led to the state from its parent
	calm   [][]int32 // by state: those from which a step without a fault leads to it
	steps  int
	depth  int
}

// wrong is a promise that is broken, with a shortest way there.
type wrong struct {
	what string
	way  []string
}

func (w *wrong) String() string { return w.what + ":\n  " + strings.Join(w.way, "\n  ") }

// search visits all states, in order of their distance from the start, and returns
// the first broken promise, or nil.
func search(sys *system, faults int8, most int) (*graph, *wrong) {
	g := &graph{sys: sys, ids: map[state]int32{}}
	var start state
	start.faults = faults
	for t := range sys.tasks {
		start.index[t] = 1
	}
	g.visit(-1, action{}, start)
	var found *wrong
	end := 1 // of the states at this distance
	for i := 0; i < len(g.states) && found == nil; i++ {
		if i == end {
			end = len(g.states)
			g.depth++
		}
		if len(g.states) > most {
			return g, &wrong{what: fmt.Sprintf("more than %d states", most)}
		}
		s := g.states[i]
		sys.next(&s, func(a action, to state, broken string) {
			g.steps++
			if broken != "" && found == nil {
				found = &wrong{broken, append(g.way(int32(i)), a.String())}
			}
			id := g.visit(int32(i), a, to)
			if !a.fault {
				g.calm[id] = append(g.calm[id], int32(i))
			}
		})
	}
	if found == nil {
		found = g.stuck()
	}
	return g, found
}

func (g *graph) visit(from int32, a action, s state) int32 {
	s.normal()
	if id, ok := g.ids[s]; ok {
		return id
	}
	id := int32(len(g.states))
	g.ids[s] = id
	g.states = append(g.states, s)
	g.parent = append(g.parent, from)
	g.by = append(g.by, a)
	g.calm = append(g.calm, nil)
	return id
}

// stuck finds a state from which no way without a fault leads to the end.
func (g *graph) stuck() *wrong {
	reach := make([]bool, len(g.states))
	var queue []int32
	for i := range g.states {
		if g.states[i].ended(g.sys.tasks) {
			reach[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range g.calm[i] {
			if !reach[from] {
				reach[from] = true
				queue = append(queue, from)
			}
		}
	}
	if i := slices.Index(reach, false); i >= 0 {
		return &wrong{"the end is out of reach", g.way(int32(i))}
	}
	return nil
}

// way returns the steps to a state.
func (g *graph) way(i int32) (steps []string) {
	for ; g.parent[i] >= 0; i = g.parent[i] {
		steps = append(steps, g.by[i].String())
	}
	slices.Reverse(steps)
	return steps
}

func (a action) String() string {
	switch a.what {
	case "a tick passes":
		return a.what
	case "is paused", "goes on", "crashes":
		return fmt.Sprintf("worker %c %s", 'A'+a.w, a.what)
	}
	if strings.HasPrefix(a.what, "a ") || strings.HasPrefix(a.what, "an ") || strings.HasPrefix(a.what, "the ") {
		return fmt.Sprintf("task %d: %s", a.t+1, a.what)
	}
	return fmt.Sprintf("task %d: worker %c %s", a.t+1, 'A'+a.w, a.what)
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is processor time, user and system, in seconds.
type cpuTime struct {
	client  float64
	servers map[serverKind]float64
}

func (c cpuTime) sub(d cpuTime) cpuTime {
	r := cpuTime{client: c.client - d.client, servers: map[serverKind]float64{}}
	for k, v := range c.servers {
		r.servers[k] = v - d.servers[k]
	}
	return r
}

func (c cpuTime) total() float64 {
	sum := c.client
	for _, v := range c.servers {
		sum += v
	}
	return sum
}

// cpu is what this process and the servers of a system have used so far.
func (m *machine) cpu(s system) cpuTime {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		panic(err) // it can't
	}
	c := cpuTime{servers: map[serverKind]float64{}}
	c.client = (time.Duration(self.Utime.Nano()) + time.Duration(self.Stime.Nano())).Seconds()
	parents, stats := processes()
	for _, kind := range s.servers {
		if running := m.running[kind]; running != nil {
			c.servers[kind] = treeTime(running.Pid(), parents, stats)
		}
	}
	return c
}

// ticks a second of /proc/<pid>/stat: USER_HZ, which Linux fixes.
const ticks = 100

type stat struct{ own, children float64 }

// processes reads all processes' parents and times.
func processes() (children map[int][]int, stats map[int]stat) {
	children, stats = map[int][]int{}, map[int]stat{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it ended meanwhile
		}
		// The name in parentheses may hold spaces.
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) < 15 {
			continue
		}
		at := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v / ticks }
		parent, _ := strconv.Atoi(f[1])
		children[parent] = append(children[parent], pid)
		stats[pid] = stat{own: at(11) + at(12), children: at(13) + at(14)}
	}
	return children, stats
}

// treeTime sums a process, those of its children that ended, and those that live.
func treeTime(pid int, children map[int][]int, stats map[int]stat) float64 {
	sum := stats[pid].own + stats[pid].children
	for _, child := range children[pid] {
		sum += treeTime(child, children, stats)
	}
	return sum
}

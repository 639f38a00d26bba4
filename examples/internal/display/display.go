// Package display shows how a run goes: on a terminal one line that changes, and
// elsewhere a new line now and then.
package display

import (
	"fmt"
	"os"
	"time"
)

// Progress is a place for progress. Print further text only after Done.
type Progress struct {
	out      *os.File
	terminal bool
	every    time.Duration
	last     time.Time
	shown    bool
}

// New returns a Progress that writes to out.
func New(out *os.File) *Progress {
	p := &Progress{out: out, every: time.Second}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.terminal, p.every = true, 100*time.Millisecond
	}
	return p
}

// Show shows line, unless one was shown a moment ago.
func (p *Progress) Show(line string) {
	if time.Since(p.last) < p.every {
		return
	}
	p.last, p.shown = time.Now(), true
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.out, line)
	}
}

// Say writes a line that stays.
func (p *Progress) Say(line string) {
	p.Done()
	fmt.Fprintln(p.out, line)
}

// Done ends the line that changes.
func (p *Progress) Done() {
	if p.terminal && p.shown {
		fmt.Fprintln(p.out)
	}
	p.shown = false
}

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dueclaim/dueclaim/internal/backends"
)

// The picture's measures, in its own units, which a browser shows as pixels.
const (
	margin   = 20
	labels   = 230 // the column of backends' names
	cellW    = 38
	cellH    = 24
	headings = 84 // room for a title and slanted names of groups
	gap      = 12 // between the parts
)

// It has a ground of its own, so that it is readable on any page, and follows
// the reader's choice of light or dark. What the colours say stands in the cells
// too.
const style = `<style>
  text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .cell { text-anchor: middle; font-variant-numeric: tabular-nums; }
  .ground { fill: #ffffff; stroke: #d0d7de; }
  .ok { fill: #d3f2da; } .some { fill: #fbeebc; } .none { fill: #eef1f4; }
  .blank { fill: none; stroke: #b0b8c0; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .ground { fill: #0d1117; stroke: #3d444d; }
    .ok { fill: #17462a; } .some { fill: #4d3a0b; } .none { fill: #21262d; }
    .blank { fill: none; stroke: #59636e; }
  }
</style>
`

// picture draws from top to bottom.
type picture struct {
	bytes.Buffer
	y     int
	right int // the rightmost edge so far
}

// svg renders the picture: a grid of backends and groups each for indexes, stores
// and users' tables; behind a store's groups, a column for each index that it was paired with.
func (r *results) svg() []byte {
	var body picture
	body.y = margin
	for _, class := range []string{backends.Index, backends.Store, backends.Table} {
		groups := r.groups(class)
		body.heading(titles[class])
		for i, group := range groups {
			body.column(column(i), group)
		}
		partners := r.partners(class)
		for i, index := range partners {
			body.column(column(len(groups)+i)+gap, "with "+index)
		}
		for _, row := range rowsOf(class) {
			body.label(row.Name)
			for i, group := range groups {
				body.cell(column(i), r.tally(row, group))
			}
			for i, index := range partners {
				pair := backends.Row{Class: backends.Pair, Name: index + "+" + row.Name}
				body.cell(column(len(groups)+i)+gap, r.tally(pair, ""))
			}
			body.y += cellH
		}
		body.y += gap
	}
	body.legend()

	width, height := body.right+margin, body.y+margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="t">`+"\n", width, height, width, height)
	out.WriteString("<title id=\"t\">Cases of the conformance suite that passed, by backend and group</title>\n" + style)
	fmt.Fprintf(&out, `<rect class="ground" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", width-1, height-1)
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// partners are the indexes that stores were paired with.
func (r *results) partners(class string) []string {
	if class != backends.Store || len(r.groups(backends.Pair)) == 0 {
		return nil
	}
	var indexes []string
	for _, row := range rowsOf(backends.Pair) {
		index, _, _ := strings.Cut(row.Name, "+")
		indexes = addOnce(indexes, index)
	}
	return indexes
}

// column is the left edge of a grid's column.
func column(i int) int { return margin + labels + i*cellW }

func (p *picture) heading(title string) {
	fmt.Fprintf(p, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, p.y+14, title)
	p.y += headings
}

func (p *picture) column(x int, name string) {
	fmt.Fprintf(p, `<text class="quiet" transform="translate(%d %d) rotate(-45)">%s</text>`+"\n", x+cellW/2-4, p.y-6, name)
	p.right = max(p.right, x+cellW, x+cellW/2+5*len(name))
}

func (p *picture) label(name string) {
	fmt.Fprintf(p, `<text x="%d" y="%d">%s</text>`+"\n", margin, p.y+16, name)
}

func (p *picture) cell(x int, t *tally) {
	class, text := "ok", fmt.Sprint(t.passed)
	switch {
	case t.passed == 0 && t.weaker > 0:
		class, text = "some", "w"
	case t.passed == 0 && t.skipped > 0:
		class, text = "some", "s"
	case t.passed == 0 && t.notProvided > 0:
		class, text = "none", "–"
	case t.passed == 0 && t.notRun > 0:
		class, text = "blank", "?"
	case t.passed == 0:
		class, text = "none", "–"
	case t.weaker > 0, t.skipped > 0, len(t.reasons) > 0, t.notRun > 0:
		class, text = "some", text+"*"
	case t.notProvided > 0:
		text += "°"
	}
	p.box(class, text, x, t.String())
}

func (p *picture) box(class, text string, x int, hint string) {
	fmt.Fprintf(p, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="3"/><text class="cell" x="%d" y="%d">%s</text></g>`+"\n",
		hint, class, x+1, p.y+1, cellW-2, cellH-2, x+cellW/2, p.y+16, text)
}

// legend explains the cells, a line each.
func (p *picture) legend() {
	p.y += gap
	for _, l := range []struct{ class, text, means string }{
		{"ok", "12", "cases that passed (°: others of the group belong to an optional capability that is not provided)"},
		{"some", "11*", "some were weaker by a mode's promises, skipped with a reason, or not tested"},
		{"none", "–", "an optional capability that is not provided, or nothing to prove"},
		{"blank", "?", "not tested: no such server was at hand, or no test asks this backend"},
	} {
		p.box(l.class, l.text, margin, l.means)
		fmt.Fprintf(p, `<text class="quiet" x="%d" y="%d">%s</text>`+"\n", margin+cellW+10, p.y+16, l.means)
		p.y += cellH
	}
}

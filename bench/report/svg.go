// Package report writes what a benchmark run measured as a page with pictures.
package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// A picture has a ground of its own, so that it is readable on any page, and
// follows the reader's choice of light or dark.
const style = `<style>
  text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .number { font-variant-numeric: tabular-nums; }
  .right { text-anchor: end; }
  .middle { text-anchor: middle; }
  .ground { fill: #ffffff; stroke: #d0d7de; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  .spread { stroke: #1f2328; stroke-width: 1.5; }
  .c0 { fill: #1a7f37; stroke: #1a7f37; } .c1 { fill: #0969da; stroke: #0969da; } .c2 { fill: #8250df; stroke: #8250df; }
  .c3 { fill: #bf8700; stroke: #bf8700; } .c4 { fill: #57606a; stroke: #57606a; } .c5 { fill: #cf222e; stroke: #cf222e; }
  .bar { stroke: none; } .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .quiet { fill: #9198a1; }
    .ground { fill: #0d1117; stroke: #3d444d; }
    .grid { stroke: #3d444d; }
    .spread { stroke: #f0f6fc; }
    .c0 { fill: #3fb950; stroke: #3fb950; } .c1 { fill: #4493f8; stroke: #4493f8; } .c2 { fill: #ab7df8; stroke: #ab7df8; }
    .c3 { fill: #d29922; stroke: #d29922; } .c4 { fill: #9198a1; stroke: #9198a1; } .c5 { fill: #f85149; stroke: #f85149; }
    .bar { stroke: none; } .line { fill: none; }
  }
</style>
`

// Measures of all pictures, in pixels as a browser shows them.
const (
	width  = 860
	margin = 20
	row    = 22
)

// picture is drawn from top to bottom.
type picture struct {
	body bytes.Buffer
	y    float64
}

func newPicture(title string) *picture {
	p := &picture{y: margin}
	p.text("title", margin, p.y+14, title)
	p.y += 30
	return p
}

func (p *picture) text(class string, x, y float64, s string) {
	fmt.Fprintf(&p.body, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, escapeXML(s))
}

func (p *picture) rect(class string, x, y, w, h float64, hint string) {
	fmt.Fprintf(&p.body, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s</title></rect>`+"\n", class, x, y, math.Max(w, 0.5), h, escapeXML(hint))
}

func (p *picture) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.body, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

// path joins points with a line, and marks them.
func (p *picture) path(class string, xs, ys []float64) {
	var points []string
	for i := range xs {
		points = append(points, fmt.Sprintf("%.1f,%.1f", xs[i], ys[i]))
		fmt.Fprintf(&p.body, `<circle class="%s" cx="%.1f" cy="%.1f" r="3.5"/>`+"\n", class, xs[i], ys[i])
	}
	fmt.Fprintf(&p.body, `<polyline class="%s line" points="%s"/>`+"\n", class, strings.Join(points, " "))
}

// svg ends the picture.
func (p *picture) svg(describes string) []byte {
	height := p.y + margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img" aria-labelledby="t">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title id=\"t\">%s</title>\n%s", escapeXML(describes), style)
	fmt.Fprintf(&out, `<rect class="ground" x="0.5" y="0.5" width="%d" height="%.0f" rx="6"/>`+"\n", width-1, height-1)
	out.Write(p.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func escapeXML(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a strings.Builder takes all
	}
	return b.String()
}

// axis maps values to pixels.
type axis struct {
	least, most float64
	from, to    float64 // pixels
	log         bool
}

func (a axis) at(v float64) float64 {
	least, most := a.least, a.most
	if a.log {
		v, least, most = math.Log10(math.Max(v, a.least)), math.Log10(least), math.Log10(most)
	}
	v = math.Min(math.Max(v, least), most)
	return a.from + (v-least)/(most-least)*(a.to-a.from)
}

// ticks are round values to label: powers of ten, or 4 to 9 even steps.
func (a axis) ticks() []float64 {
	var list []float64
	if a.log {
		for v := a.least; v <= a.most*1.001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := niceStep((a.most - a.least) / 4)
	for i := 0; a.least+float64(i)*step <= a.most*1.001; i++ {
		list = append(list, a.least+float64(i)*step)
	}
	return list
}

// niceStep is the greatest of 1, 2 and 5 times a power of ten that is at most v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	switch {
	case v >= 5*power:
		return 5 * power
	case v >= 2*power:
		return 2 * power
	}
	return power
}

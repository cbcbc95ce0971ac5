package inspect

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// A timeline describes the course of one execution: its beats, its silences, and the time in which its idle check was
// held. Its instants are durations since the start of the execution.
type timeline struct {
	Tool    string
	ID      uint64
	Elapsed time.Duration
	Total   time.Duration // 0 means none, and so in Idle
	Idle    time.Duration
	Marks   []mark // in order of time
	Outcome string // such as "ok" or "idle timeout"; "" while the execution runs
}

func (w *row) timeline(marks []mark) timeline {
	return timeline{Tool: w.Tool, ID: w.ID, Elapsed: time.Duration(w.Elapsed), Total: time.Duration(w.Total), Idle: time.Duration(w.Idle),
		Marks: marks, Outcome: w.Outcome}
}

// The size of the picture, in pixels.
const (
	width, height = 720, 104
	left, right   = 10, 10
	lane, laneEnd = 26, 50
	under         = 66 // the first line of text under the lane; each label has a line of its own
	textLine      = 16
)

// pictureStyle is a separate string because the page's content policy includes its hash.
const pictureStyle = `text{font:12px system-ui,sans-serif;fill:#333}.lane{fill:#e8edf2}.work{fill:#2f6fab}.beat{stroke:#123;stroke-width:1}` +
	`.held{fill:#c9a227}.limit{stroke:#c22;stroke-width:1.5;stroke-dasharray:4 3}.end{stroke:#333;stroke-width:2}` +
	`@media(prefers-color-scheme:dark){text{fill:#ddd}.lane{fill:#2b333b}.work{fill:#5b9bd5}.beat{stroke:#eef}.limit{stroke:#ff6b6b}.end{stroke:#ddd}}`

// writeSVG draws the timeline, to scale, as a self-contained SVG document: dark where beats came, light where there
// were none, amber where the idle check was held, with a line at each limit. It suits a light and a dark page.
func (t timeline) writeSVG(w io.Writer) error {
	span := t.span()
	x := func(d time.Duration) float64 {
		return left + float64(min(max(d, 0), span))/float64(span)*(width-left-right)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		width, height, width, height, escape(t.describe()))
	fmt.Fprintf(&b, "<style>%s</style>", pictureStyle)
	fmt.Fprintf(&b, `<text x="%d" y="16">%s</text>`, left, escape(t.title()))
	rect := func(class string, from, to time.Duration) {
		if x(to) > x(from) {
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class, x(from), lane, x(to)-x(from), laneEnd-lane)
		}
	}
	rect("lane", 0, t.Elapsed)
	var last mark
	for _, m := range t.Marks {
		if m.Beats > last.Beats { // beats came after the previous mark, the last at LastBeat
			rect("work", max(last.LastBeat, last.At), m.LastBeat)
		}
		last = m
	}
	for i, m := range t.Marks {
		var before mark
		if i > 0 {
			before = t.Marks[i-1]
		}
		if held := m.Held - before.Held; held > 0 {
			rect("held", max(m.At-held, before.At), m.At)
		}
	}
	for i, m := range t.Marks {
		if i == 0 || m.LastBeat > t.Marks[i-1].LastBeat {
			fmt.Fprintf(&b, `<path class="beat" d="M%.1f %dV%d"/>`, x(m.LastBeat), lane, laneEnd)
		}
	}
	line := func(class string, at time.Duration, y int, text string) {
		if at > span {
			return
		}
		anchor := "middle"
		if x(at) > width-60 {
			anchor = "end"
		} else if x(at) < 60 {
			anchor = "start"
		}
		fmt.Fprintf(&b, `<path class="%s" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="%s">%s</text>`,
			class, x(at), lane-4, laneEnd+4, x(at), y, anchor, text)
	}
	line("end", t.Elapsed, under, short(t.Elapsed))
	if t.Idle > 0 && (t.Outcome == "" || t.Outcome == idle) {
		line("limit", last.LastBeat+t.Idle, under+textLine, "idle limit")
	}
	if t.Total > 0 {
		line("limit", t.Total, under+2*textLine, "total limit")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// span returns the length of time that the picture shows: the elapsed time or, if a limit comes soon after it, the
// time until that limit.
func (t timeline) span() time.Duration {
	span := t.Elapsed
	near := []time.Duration{t.Total}
	if n := len(t.Marks); n > 0 && t.Idle > 0 {
		near = append(near, t.Marks[n-1].LastBeat+t.Idle)
	}
	for _, at := range near {
		if at <= t.Elapsed+t.Elapsed/4 {
			span = max(span, at)
		}
	}
	return max(span, 1)
}

func (t timeline) title() string {
	if t.Outcome == "" {
		return fmt.Sprintf("%s #%d, running for %s", name(t.Tool), t.ID, short(t.Elapsed))
	}
	return fmt.Sprintf("%s #%d, %s after %s", name(t.Tool), t.ID, t.Outcome, short(t.Elapsed))
}

// describe returns a text for readers who cannot see the picture.
func (t timeline) describe() string {
	var beats uint64
	if n := len(t.Marks); n > 0 {
		beats = t.Marks[n-1].Beats
	}
	return fmt.Sprintf("%s, %d heartbeats", t.title(), beats)
}

// escape returns s as text of an XML document. It replaces invalid UTF-8 and the characters that XML does not allow.
func escape(s string) string {
	s = strings.NewReplacer("\ufffe", "�", "\uffff", "�").Replace(strings.ToValidUTF8(s, "�"))
	return template.HTMLEscapeString(texts.Line(s))
}

package main

import (
	"bytes"
	"math"

	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// An excerpt is the part of the output after a position that an answer contains: all of it, or the beginning and the
// end.
type excerpt struct {
	head, tail string // tail is empty if nothing is left out between them

	lost  int64 // bytes before head that are no longer kept
	left  int64 // bytes between head and tail, or after head on a page
	lines int   // line ends among them, or 0 if they are not known
	at    int64 // position of the gap
	next  int64 // position after what this covers
}

// whole returns the output after a position. If it has more than most characters, whole leaves out the middle, because
// the first error is usually at the beginning, and the outcome at the end.
func whole(j *job.Job, from int64, most int) excerpt {
	all := j.ReadText(from, 0)
	if fits(all.Data, most) {
		return excerpt{head: string(all.Data), lost: all.Dropped, next: all.Next}
	}
	e := page(j, from, most/4)
	// The tail begins after the head, even if the two would overlap.
	at := max(all.Next-int64(most-most/4), e.next)
	if raw := j.Read(at, int(all.Next-at)); at > e.next {
		if i := bytes.IndexByte(raw.Data, '\n'); i >= 0 && i < len(raw.Data)-1 {
			at += raw.Dropped + int64(i) + 1
		}
	}
	rest := j.ReadText(at, most-most/4) // with a limit, because a command may write faster than this reads
	e.at, e.left, e.lines = e.next, at+rest.Dropped-e.next, 0
	if between := j.Read(e.at, int(min(e.left, math.MaxInt32))); between.Dropped == 0 {
		e.lines = bytes.Count(between.Data, []byte("\n"))
	}
	e.tail, e.next = string(rest.Data), rest.Next
	return e
}

// page returns up to most bytes of the output after a position, up to the end of a line if there is one in them.
func page(j *job.Job, from int64, most int) excerpt {
	raw := j.Read(from, most)
	n := len(raw.Data)
	if i := bytes.LastIndexByte(raw.Data, '\n'); i >= 0 && !raw.Last && n == most {
		n = i + 1
	}
	text := j.ReadText(raw.Next-int64(len(raw.Data)), n)
	e := excerpt{head: string(text.Data), lost: raw.Dropped + text.Dropped, next: text.Next, at: text.Next}
	if rest := j.Read(text.Next, 0); len(rest.Data) > 0 || rest.Dropped > 0 {
		if e.left = rest.Next - text.Next; rest.Dropped == 0 {
			e.lines = bytes.Count(rest.Data, []byte("\n"))
		}
	}
	return e
}

// fits reports whether text has no more than most characters.
func fits(text []byte, most int) bool {
	return len(text) <= most || len(text) <= 4*most && len(bytes.Runes(text)) <= most
}

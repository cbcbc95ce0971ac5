package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The verifier, pan, prints a line like this every so many new states:
//
//	Depth=  633325 States=    3e+05 Transitions= 3.33e+05 Memory=   202.109	t=     0.11 R=   3e+06
//
// and at the end a summary that has, among other lines:
//
//	pan:1: invalid end state (at depth 92)
//	error: max search depth too small
//	Warning: Search not completed
//	State-vector 52 byte, depth reached 93, errors: 1
//	       95 states, stored
var (
	progressLine = regexp.MustCompile(`^Depth= *(\d+) States= *(\S+) .*Memory= *(\S+)`)
	errorLine    = regexp.MustCompile(`^pan:\d+: (.*)$`)
	vectorLine   = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	storedLine   = regexp.MustCompile(`^ *(\S+) states, stored`)
)

// A standing is how far a search has come.
type standing struct {
	depth  int
	states float64
	memory float64 // MiB
}

// parseProgress returns the progress in a line of output, and reports whether it has any.
func parseProgress(line string) (p standing, ok bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return p, false
	}
	p.depth, _ = strconv.Atoi(m[1])
	p.states, _ = strconv.ParseFloat(m[2], 64)
	p.memory, _ = strconv.ParseFloat(m[3], 64)
	return p, true
}

// A summary says how a search has ended.
type summary struct {
	found      bool // there was one
	errors     int
	what       string // the first error
	depth      int
	states     float64
	incomplete string // why not everything was searched; empty if it was
}

func parseSummary(output string) summary {
	var s summary
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := errorLine.FindStringSubmatch(line); m != nil && s.what == "" {
			s.what = m[1]
			if strings.HasPrefix(s.what, "invalid end state") {
				s.what = "deadlock, that is, " + s.what
			}
		}
		if m := vectorLine.FindStringSubmatch(line); m != nil {
			s.found = true
			s.depth, _ = strconv.Atoi(m[1])
			s.errors, _ = strconv.Atoi(m[2])
		}
		if m := storedLine.FindStringSubmatch(line); m != nil {
			s.states, _ = strconv.ParseFloat(m[1], 64)
		}
		switch {
		case line == "Interrupted":
			s.incomplete = "it was interrupted"
		case strings.HasPrefix(line, "pan: reached -DMEMLIM bound"):
			s.incomplete = "the memory limit was reached"
		case strings.HasPrefix(line, "error: max search depth too small"):
			s.incomplete = "there is more below the depth limit"
		case strings.HasPrefix(line, "Bit statespace search") && s.incomplete == "":
			s.incomplete = "bitstate search may miss states"
		}
	}
	return s
}

// excerpt leaves out the lines of progress but the last, and empty lines. Short leaves
// only the lines that say what happened.
func excerpt(output string, short bool) []string {
	var lines []string
	last := -1
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \t\r\n")
		isProgress := progressLine.MatchString(line)
		if line == "" || (short && !isProgress && !headline(line)) {
			continue
		}
		if isProgress {
			if last >= 0 {
				lines = append(lines[:last], lines[last+1:]...)
			}
			last = len(lines)
		}
		lines = append(lines, line)
	}
	return lines
}

func headline(line string) bool {
	return line == "Interrupted" || strings.HasPrefix(line, "spin:") || strings.HasPrefix(line, "error:") ||
		errorLine.MatchString(line) || vectorLine.MatchString(line) || storedLine.MatchString(line)
}

// commandLine is for people to read.
func commandLine(program string, args []string) string {
	return strings.TrimSuffix(filepath.Base(program), ".exe") + " " + strings.Join(args, " ")
}

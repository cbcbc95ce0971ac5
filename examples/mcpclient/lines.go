package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress"
)

// A serial makes a display safe for concurrent use. It drops progress that arrives while a person is asked or after the
// result.
type serial struct {
	mu    sync.Mutex
	d     display
	asked bool
	ended bool
}

// newSerial returns a bar if stderr is a terminal, otherwise lines.
func newSerial(stderr *os.File) *serial {
	if isTerminal(stderr) {
		return &serial{d: &bar{out: stderr}}
	}
	return &serial{d: &lines{out: stdio.New(stderr)}}
}

func (s *serial) update(p *mcp.ProgressNotificationParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked && !s.ended {
		s.d.update(p)
	}
}

// pause clears the display, and drops progress until resume is called.
func (s *serial) pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	s.d.clear()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = false
	}
}

func (s *serial) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.d.clear()
}

// lines is a display that prints progress as lines. It skips keep-alives, which have neither progress nor a message,
// and repeated lines.
type lines struct {
	out  io.Writer
	last string
}

func (l *lines) update(p *mcp.ProgressNotificationParams) {
	shown, text := figures(p), harmless(p.Message)
	if shown == "0" && text == "" {
		return
	}
	if line := fmt.Sprintln("progress:", shown, text); line != l.last {
		fmt.Fprint(l.out, line)
		l.last = line
	}
}

func (*lines) clear() {}

// figures returns the progress and the total as text, rounded so that the tiny increases of keep-alives do not show.
func figures(p *mcp.ProgressNotificationParams) string {
	return cmp.Or(progress.Update{Progress: p.Progress, Total: p.Total}.String(), "0")
}

// harmless returns text of a server as one line without control characters.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, s)
}

package stacks

import (
	"bytes"
	"strconv"
	"time"
)

// maxStack limits the text of one goroutine and its descendants, in bytes.
const maxStack = 64 << 10

// A Sample holds the traces of all goroutines at one instant.
type Sample struct {
	Begun    time.Time           // before the instant
	byArg    map[string][]byte   // trace by the first argument of the frame Sampler.Frame
	children map[string][][]byte // traces by the number of the parent goroutine
}

var (
	createdBy = []byte("\ncreated by ")
	inRoutine = []byte(" in goroutine ")
)

// index returns the Sample of text, the output of runtime.Stack for all goroutines.
func index(text []byte, frame string) *Sample {
	s := &Sample{byArg: make(map[string][]byte), children: make(map[string][][]byte)}
	for trace := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n\n")) {
		if _, rest, ok := bytes.Cut(trace, []byte(frame)); ok {
			arg, _, _ := bytes.Cut(rest, []byte(")"))
			s.byArg[string(bytes.TrimRight(arg, "?"))] = trace // "?" marks a value that may be stale
		}
		if _, rest, ok := bytes.Cut(trace, createdBy); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if _, parent, ok := bytes.Cut(line, inRoutine); ok {
				s.children[string(parent)] = append(s.children[string(parent)], trace)
			}
		}
	}
	return s
}

// Find returns the trace of the goroutine whose frame Sampler.Frame has arg as its first argument,
// followed by the traces of its descendants, separated by empty lines, up to 64 KiB in all. It
// returns nil if there is no such goroutine.
func (s *Sample) Find(arg string) []byte {
	trace := s.byArg[arg]
	if trace == nil {
		return nil
	}
	out := bytes.Clone(trace)
	for queue := [][]byte{trace}; len(queue) > 0; queue = queue[1:] {
		for _, child := range s.children[number(queue[0])] {
			if len(out)+len("\n\n")+len(child) > maxStack {
				return out[:min(len(out), maxStack)]
			}
			out = append(append(out, "\n\n"...), child...)
			queue = append(queue, child)
		}
	}
	return out[:min(len(out), maxStack)]
}

// number returns the number of the goroutine of a trace, such as "7" for "goroutine 7 [select]:", or "".
func number(trace []byte) string {
	rest, _ := bytes.CutPrefix(trace, []byte("goroutine "))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	if _, err := strconv.Atoi(string(digits)); err != nil {
		return ""
	}
	return string(digits)
}

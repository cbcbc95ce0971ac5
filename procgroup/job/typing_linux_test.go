package job_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// SPEC 6.31: a write to a terminal writes no more than arrives, and says what the terminal would do with the rest.
func TestWriteToATerminal(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return strings.Repeat("x", n) }
	control := func(at int, b byte, effect string) *procgroup.TypingError {
		return &procgroup.TypingError{Offset: int64(at), Byte: b, Effect: effect}
	}
	long := &procgroup.TypingError{Offset: 4095, Byte: 'x', Effect: "it keeps only 4095 bytes of a line"}
	for _, tt := range []struct {
		name, stty string
		writes     []string
		refused    *procgroup.TypingError // the last write
		arrives    string
	}{
		{"a line", "", []string{"ab\n"}, nil, "ab\n"},
		{"the longest line", "", []string{line(4095) + "\n"}, nil, line(4095) + "\n"},
		{"a line that is too long", "", []string{line(4096) + "\n"}, long, line(4095)},
		{"the same in parts", "", []string{line(3000), line(2000)}, &procgroup.TypingError{Offset: 1095, Byte: 'x', Effect: "it keeps only 4095 bytes of a line"}, line(4095)},
		{"many lines", "", []string{strings.Repeat("line\n", 5000)}, nil, strings.Repeat("line\n", 5000)},
		{"the same after a carriage return", "", []string{line(3000) + "\r" + line(3000) + "\n"}, nil, line(3000) + "\n" + line(3000) + "\n"},
		{"a long line where lines are not kept", "-icanon", []string{line(10000)}, nil, line(10000)},
		{"a byte that interrupts", "", []string{"ab\x03c\n"}, control(2, 3, "it interrupts the processes in the foreground"), "ab"},
		{"one that makes processes quit", "", []string{"ab\x1cc\n"}, control(2, 0x1c, "it makes the processes in the foreground quit"), "ab"},
		{"one that stops processes", "", []string{"ab\x1ac\n"}, control(2, 0x1a, "it stops the processes in the foreground"), "ab"},
		{"the same where there are no signals", "-isig", []string{"ab\x03\x1c\x1ac\n"}, nil, "ab\x03\x1c\x1ac\n"},
		{"one that stops the output", "", []string{"ab\x13c\n"}, control(2, 0x13, "it stops the output"), "ab"},
		{"only that", "", []string{"\x13"}, control(0, 0x13, "it stops the output"), ""},
		{"one that starts the output", "", []string{"ab\x11c\n"}, control(2, 0x11, "it lets output that was stopped go on"), "ab"},
		{"the same where output is never stopped", "-ixon", []string{"ab\x13\x11c\n"}, nil, "ab\x13\x11c\n"},
		{"one that ends the input", "", []string{"ab\n\x04c\n"}, control(3, 4, "it ends the input"), "ab\n"},
		{"one that takes a character back", "", []string{"ab\x7fc\n"}, control(2, 0x7f, "it takes a character back"), "ab"},
		{"one that takes the line back", "", []string{"ab\x15c\n"}, control(2, 0x15, "it takes the line back"), "ab"},
		{"one that takes a word back", "", []string{"ab\x17c\n"}, control(2, 0x17, "it takes a word back"), "ab"},
		{"one that quotes", "", []string{"ab\x16c\n"}, control(2, 0x16, "it quotes the byte that follows"), "ab"},
		{"the same without extensions", "-iexten", []string{"ab\x16\x17\x12c\n"}, nil, "ab\x16\x17\x12c\n"},
		{"another byte that interrupts", "intr ^X", []string{"a\x03b\x18c\n"}, control(3, 0x18, "it interrupts the processes in the foreground"), "a\x03b"},
		{"none that interrupts", "intr undef", []string{"a\x03b\n"}, nil, "a\x03b\n"},
		{"carriage returns that are dropped", "igncr", []string{"a\rb\n"}, control(1, '\r', "it drops carriage returns"), "a"},
		{"an eighth bit that is cleared", "istrip", []string{"aéb\n"}, control(1, 0xc3, "it clears the eighth bit"), "a"},
		{"where the terminal does nothing", "raw opost", []string{"\x03\x04\x13\x7f\x16" + line(5000)}, nil, "\x03\x04\x13\x7f\x16" + line(5000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newJobs(t, &job.Set{})
			count := fmt.Sprintf("head -c %d", len(tt.arrives))
			if tt.arrives == "" {
				count = "cat"
			}
			// It does not end, because a write to a command that has ended has no error.
			j := s.sh("stty -echo "+tt.stty+"; echo ready; "+count+" | od -An -v -tx1 | tr -d ' \n'; stty sane; echo; echo done; exec sleep 60", procgroup.Terminal{Rows: 24, Cols: 80})
			wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("^ready$")})
			var err error
			for i, p := range tt.writes {
				var n int
				if n, _, err = j.Write(t.Context(), []byte(p)); i == len(tt.writes)-1 || err != nil {
					want := len(p)
					if tt.refused != nil {
						want = int(tt.refused.Offset)
					}
					if n != want {
						t.Errorf("%d bytes were written, want %d", n, want)
					}
				}
			}
			var refused *procgroup.TypingError
			if errors.As(err, &refused); tt.refused == nil && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.refused, refused); diff != "" {
				t.Error(diff)
			}
			if !strings.HasSuffix(tt.arrives, "\n") && tt.stty != "raw opost" && tt.stty != "-icanon" {
				j.CloseInput() // passes on what there is of a line
			}
			wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("^done$")})
			text := string(j.ReadText(0, 0).Data)
			_, text, _ = strings.Cut(text, "ready\n")
			text, _, _ = strings.Cut(text, "\n")
			if want := fmt.Sprintf("%x", tt.arrives); text != want {
				t.Errorf("%.200q has arrived, want %.200q", text, want)
			}
		})
	}
}

// SPEC 6.31: keys do what the terminal does with them, and never stop the output for good.
func TestType(t *testing.T) {
	t.Parallel()
	s := newJobs(t, &job.Set{})
	j := s.sh("trap 'echo interrupted' INT; sh -c 'echo ready; exec sleep 600'; while read x; do echo got $x; done; exit 3", procgroup.Terminal{Rows: 24, Cols: 80})
	wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("^ready$")})
	if n, _, err := j.Type(t.Context(), []byte("no\x15\x03")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("interrupted")})
	var refused *procgroup.TypingError
	if n, _, err := j.Type(t.Context(), []byte("a\x13b")); n != 1 || !errors.As(err, &refused) || refused.Byte != 0x13 {
		t.Errorf("%d, %v", n, err)
	}
	if n, _, err := j.Type(t.Context(), []byte("x\x7fb\x13\x11\n")); n != 6 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wait(t, j, job.WakeMatch, job.Until{Match: regexp.MustCompile("^got ab$")})
	if n, _, err := j.Type(t.Context(), []byte("\x04")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wait(t, j, job.WakeEnd, job.Until{})
}

package main

import (
	"slices"
	"testing"
)

const spinOutput = `Depth=  844436 States=    4e+05 Transitions= 4.44e+05 Memory=   209.043	t=     0.14 R=   3e+06
error: max search depth too small
Depth=  999999 States=  2.1e+06 Transitions=  1.9e+07 Memory=   288.535	t=     2.76 R=   8e+05
pan:1: invalid end state (at depth 92)
pan: wrote model.pml.trail

(Spin Version 6.5.2 -- 6 December 2019)
Warning: Search not completed

State-vector 36 byte, depth reached 999999, errors: 1
  2147715 states, stored
 17484653 states, matched
`

func TestParseProgress(t *testing.T) {
	t.Parallel()
	line := "Depth=  999999 States=  2.1e+06 Transitions=  1.9e+07 Memory=   288.535\tt=     2.76 R=   8e+05"
	if got, ok := parseProgress(line); !ok || got != (standing{999999, 2.1e6, 288.535}) {
		t.Errorf("%v, %v", got, ok)
	}
	for _, line := range []string{"", "Depth=", "State-vector 36 byte, depth reached 7, errors: 0"} {
		if got, ok := parseProgress(line); ok {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestParseSummary(t *testing.T) {
	t.Parallel()
	want := summary{
		found: true, errors: 1, what: "deadlock, that is, invalid end state (at depth 92)",
		depth: 999999, states: 2147715, incomplete: "there is more below the depth limit",
	}
	if got := parseSummary(spinOutput); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := parseSummary("Depth= 1\r\nsome text"); got != (summary{}) {
		t.Errorf("%+v", got)
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	want := []string{
		"error: max search depth too small",
		"Depth=  999999 States=  2.1e+06 Transitions=  1.9e+07 Memory=   288.535	t=     2.76 R=   8e+05",
		"pan:1: invalid end state (at depth 92)",
		"State-vector 36 byte, depth reached 999999, errors: 1",
		"  2147715 states, stored",
	}
	if got := excerpt(spinOutput, true); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := excerpt(spinOutput, false); len(got) != 9 {
		t.Errorf("%d lines: %q", len(got), got)
	}
}

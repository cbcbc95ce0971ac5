package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// SPEC 17.2: the version has the commit and the version of Go.
func TestVersion(t *testing.T) {
	want := regexp.MustCompile(`^deadline \(tooldeadline\) \S+, commit \S+, go1\.\S+ \w+/\w+\n$`)
	if got := versionText("deadline"); !want.MatchString(got) {
		t.Errorf("%q", got)
	}
}

// The examples in the help are valid command lines.
func TestHelpExamples(t *testing.T) {
	_, examples, _ := strings.Cut(help, "\nExamples:\n")
	n := 0
	for line := range strings.Lines(examples) {
		if args, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  {name} "); found {
			n++
			if _, err := parse(strings.Fields(args)); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		}
	}
	if n == 0 {
		t.Error("the help has no examples")
	}
}

// SPEC 17.1: the manual page has the options of the help, in its order, and each completion has them, too.
func TestManual(t *testing.T) {
	harness.Manual(t, "deadline", help, regexp.MustCompile(`(?m)^ {2,6}(?:(-\w), )?(--[\w-]+)`))
}

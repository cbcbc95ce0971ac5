package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	options, _, _ := strings.Cut(help, "\nExit status:\n")
	var help, page []string
	for _, m := range regexp.MustCompile(`(?m)^ {2,6}(?:(-\w), )?(--[\w-]+)`).FindAllStringSubmatch(options, -1) {
		for _, name := range m[1:] {
			if name != "" {
				help = append(help, name)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\\fB((?:\\-|\w)+)\\fR(?:, \\fB((?:\\-|\w)+)\\fR)?`).FindAllStringSubmatch(read("man/deadline.1"), -1) {
		for _, name := range m[1:] {
			if name = strings.ReplaceAll(name, `\-`, "-"); strings.HasPrefix(name, "-") {
				page = append(page, name)
			}
		}
	}
	if diff := cmp.Diff(help, page); diff != "" || len(help) < 5 {
		t.Errorf("help and manual page: %s", diff)
	}
	for _, file := range []string{"_deadline", "deadline.bash", "deadline.fish"} {
		text := read("completions/" + file)
		for _, name := range help {
			if strings.HasSuffix(file, ".fish") {
				name = strings.TrimLeft(name, "-")
			}
			if !strings.Contains(text, name) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
}

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

// SPEC 17.2: the version has the commit and the version of Go. Both programs have the same code for it.
func TestVersion(t *testing.T) {
	for _, flag := range []string{"-version", "--version"} {
		var stdout, stderr strings.Builder
		code := machine.run(t.Context(), []string{flag}, nil, &stdout, &stderr)
		want := regexp.MustCompile(`^mcpdeadline \(tooldeadline\) \S+, commit \S+, go1\.\S+ \w+/\w+\n$`)
		if code != 0 || !want.MatchString(stdout.String()) || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", flag, code, &stdout, &stderr)
		}
	}
	for _, file := range []string{"version.go", "launcher.go"} { // a module of its own cannot import them
		other, err := os.ReadFile("../deadline/" + file)
		if own, _ := os.ReadFile(file); err != nil || string(own) != string(other) {
			t.Errorf("%s differs from that of cmd/deadline: %v", file, err)
		}
	}
}

// The examples in the help are valid command lines.
func TestHelpExamples(t *testing.T) {
	_, examples, _ := strings.Cut(helpText(t), "\nExamples:\n")
	n := 0
	for line := range strings.Lines(examples) {
		if args, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  mcpdeadline "); found {
			n++
			if _, err := parse(strings.Fields(args), nil); err != nil {
				t.Errorf("%s: %v", args, err)
			}
		}
	}
	if n == 0 {
		t.Error("the help has no examples")
	}
}

// SPEC 17.1: the manual page has the flags of the help, in its order, and each completion has them, too.
func TestManual(t *testing.T) {
	harness.Manual(t, "mcpdeadline", helpText(t), regexp.MustCompile(`(?m)^  (-[\w-]+)`))
}

func helpText(t *testing.T) string {
	var help strings.Builder
	if code := machine.run(t.Context(), []string{"--help"}, nil, &help, nil); code != 0 {
		t.Fatalf("exit %d", code)
	}
	return help.String()
}

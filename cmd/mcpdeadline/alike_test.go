package main

import (
	"regexp"
	"strings"
	"testing"
)

// SPEC 17.2: the version has the commit and the version of Go. Both programs have the same code for
// it.
func TestVersion(t *testing.T) {
	for _, flag := range []string{"-version", "--version"} {
		var stdout, stderr strings.Builder
		code := machine.run(t.Context(), []string{flag}, nil, &stdout, &stderr)
		want := regexp.MustCompile(`^mcpdeadline \(tooldeadline\) \S+, commit \S+, go1\.\S+ \w+/\w+\n$`)
		if code != 0 || !want.MatchString(stdout.String()) || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", flag, code, &stdout, &stderr)
		}
	}
	for _, file := range []string{"version.go", "launcher.go"} {
		if read(t, file) != read(t, "../deadline/"+file) {
			t.Errorf("%s differs from that of cmd/deadline", file)
		}
	}
}

// The examples in the help are valid command lines.
func TestHelpExamples(t *testing.T) {
	var help strings.Builder
	if code := machine.run(t.Context(), []string{"--help"}, nil, &help, nil); code != 0 {
		t.Fatalf("exit %d", code)
	}
	_, examples, _ := strings.Cut(help.String(), "\nExamples:\n")
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

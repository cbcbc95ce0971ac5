package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// SPEC 17.1: the manual page has the flags of the help, in its order, and each completion has them, too.
func TestManual(t *testing.T) {
	read := func(file string) string { return read(t, file) }
	var text strings.Builder
	if code := machine.run(t.Context(), []string{"--help"}, nil, &text, nil); code != 0 {
		t.Fatalf("exit %d", code)
	}
	flags, _, _ := strings.Cut(text.String(), "\nExit status:\n")
	var help, page []string
	for _, m := range regexp.MustCompile(`(?m)^  (-[\w-]+)`).FindAllStringSubmatch(flags, -1) {
		help = append(help, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^\\fB((?:\\-|\w)+)\\fR(?:, \\fB((?:\\-|\w)+)\\fR)?`).FindAllStringSubmatch(read("man/mcpdeadline.1"), -1) {
		for _, name := range m[1:] {
			if name = strings.ReplaceAll(name, `\-`, "-"); strings.HasPrefix(name, "-") {
				page = append(page, name)
			}
		}
	}
	if diff := cmp.Diff(help, page); diff != "" || len(help) < 5 {
		t.Errorf("help and manual page: %s", diff)
	}
	for _, file := range []string{"_mcpdeadline", "mcpdeadline.bash", "mcpdeadline.fish"} {
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

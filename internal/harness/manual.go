package harness

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var inManual = regexp.MustCompile(`(?m)^\\fB((?:\\-|\w)+)\\fR(?:, \\fB((?:\\-|\w)+)\\fR)?`)

// Manual checks that the manual page of a program, in the folder man, has the options of its help in the same order,
// and that the shell completions, in the folder completions, have them, too. The submatches of option in help, up to
// the line "Exit status:", are the options.
func Manual(t testing.TB, program, help string, option *regexp.Regexp) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	names := func(option *regexp.Regexp, text string) (all []string) {
		for _, found := range option.FindAllStringSubmatch(text, -1) {
			for _, name := range found[1:] {
				if name = strings.ReplaceAll(name, `\-`, "-"); strings.HasPrefix(name, "-") {
					all = append(all, name)
				}
			}
		}
		return all
	}
	help, _, _ = strings.Cut(help, "\nExit status:\n")
	options := names(option, help)
	if page := names(inManual, read("man/"+program+".1")); !slices.Equal(options, page) || len(options) < 5 {
		t.Errorf("the help has %q, the manual page %q", options, page)
	}
	for _, file := range []string{"_" + program, program + ".bash", program + ".fish"} {
		text := read("completions/" + file)
		for _, name := range options {
			if strings.HasSuffix(file, ".fish") {
				name = strings.TrimLeft(name, "-")
			}
			if !strings.Contains(text, name) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goHelp is a help of the form of package flag.
const goHelp = `Usage: mcp [FLAG]... -- COMMAND [ARG]...
  or:  mcp [FLAG]... -url URL
Start COMMAND, or connect
to URL.

  -alive SIGN[,SIGN...]
    	what counts: progress, log, c-p-u (default all)
  -help
    	print this help and exit
  -tool NAME:total=1h
    	limits of one tool; may be repeated

.5s is a DURATION, 0 no limit,
and that's all.

Exit status:
  0    if the host has disconnected
  -    the exit status of COMMAND
       otherwise

Examples:
  mcp -tool a:total=1h -- ./server
        an hour,
        for one tool
`

var goManual = manual{
	name:     "mcp",
	synopsis: []string{"[FLAG]... -- COMMAND [ARG]...", "[FLAG]... -url URL"},
	about:    "Start COMMAND, or connect to URL.",
	options: []option{
		{"", "-alive", "SIGN[,SIGN...]", "what counts: progress, log, c-p-u (default all)"},
		{"", "-help", "", "print this help and exit"},
		{"", "-tool", "NAME:total=1h", "limits of one tool; may be repeated"},
	},
	notes:    []string{".5s is a DURATION, 0 no limit, and that's all."},
	status:   []item{{"0", "if the host has disconnected"}, {"-", "the exit status of COMMAND otherwise"}},
	examples: []item{{"mcp -tool a:total=1h -- ./server", "an hour, for one tool"}},
}

func gnuManual(t *testing.T) *manual {
	t.Helper()
	help, err := os.ReadFile("../../cmd/deadline/help.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseHelp("deadline", strings.ReplaceAll(string(help), "{name}", "deadline"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// SPEC 17.1: manual pages and completions say what the help says, in both of its forms.
func TestParseHelp(t *testing.T) {
	m, err := parseHelp("mcp", goHelp)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&goManual, m, cmp.AllowUnexported(manual{}, option{}, item{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"progress", "log", "c-p-u"}, m.options[0].values()); diff != "" {
		t.Error(diff)
	}

	m = gnuManual(t)
	for _, want := range []option{
		{"-k", "--kill-after", "DURATION", "also send a KILL signal if COMMAND is still running this long after the first signal was sent"},
		{"", "--help", "", "print this help and exit"},
	} {
		n := 0
		for _, o := range m.options {
			if o == want {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d options %+v in %+v", n, want, m.options)
		}
	}
	for _, help := range []string{"", "Usage: x y\nAbout.\n", strings.ReplaceAll(goHelp, "  mcp ", "  other "), strings.Replace(goHelp, "  0    if", "  zero", 1)} {
		if m, err := parseHelp("mcp", help); err == nil {
			t.Errorf("%q: got %+v, want an error", help, m)
		}
	}
}

// The page has no line that man would take for a request, and nothing that mandoc warns of.
func TestManPage(t *testing.T) {
	for _, m := range []*manual{&goManual, gnuManual(t)} {
		page := manPage(m, "do a thing", "v0.1.0", time.Unix(1_700_000_000, 0).UTC())
		if m == &goManual && !bytes.Contains(page, []byte("\n\\&.5s is a DURATION, 0 no limit, and that\\(aqs all.\n")) {
			t.Errorf("not escaped:\n%s", page)
		}
		path := filepath.Join(t.TempDir(), m.name+".1")
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath("mandoc"); err != nil {
			t.Skip("mandoc, which checks the pages, is not installed")
		}
		if out, err := exec.Command("mandoc", "-T", "lint", "-W", "warning", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", m.name, err, out, page)
		}
	}
}

// The completions of the three shells for a line. Each is asked in its own way.
func TestCompletions(t *testing.T) {
	dir := t.TempDir()
	for _, m := range []*manual{&goManual, gnuManual(t)} {
		for _, f := range completions(m, m == &goManual) {
			path := filepath.Join(dir, filepath.Base(f.name))
			if err := os.WriteFile(path, f.data, f.mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "some-file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// bash is given the words, in which it takes "=" for one of its own.
	bash := `. ./$0.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _$0; printf '%s\n' "${COMPREPLY[@]}" | sort -u`
	fish := `for f in *.fish; source ./$f; end; complete -C "$argv" | string split -f1 \t | sort -u`
	tests := []struct{ line, want string }{
		{"deadline --kill", "--kill-after"},
		{"deadline --alive=o", "output"},
		{"deadline -v 1h cat some-f", "some-file"},
		{"deadline --idle 5 -k 3 1h cat some-f", "some-file"},
		{"mcp -al", "-alive"},
		{"mcp -alive c", "c-p-u"},
		{"mcp -tool x -- cat some-f", "some-file"},
		{"mcp some-f", ""},
	}
	for _, shell := range []string{"bash", "fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not installed", shell)
			}
			for _, test := range tests {
				program, _, _ := strings.Cut(test.line, " ")
				cmd := exec.Command("fish", "--no-config", "-c", fish, "--", test.line)
				if shell == "bash" {
					words := strings.Fields(strings.ReplaceAll(test.line, "=", " = "))
					cmd = exec.Command("bash", append([]string{"--norc", "-c", bash, program}, words...)...)
				}
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
				out, err := output(cmd)
				out = strings.TrimPrefix(strings.TrimSpace(out), "--alive=") // fish repeats it
				if err != nil || out != test.want {
					t.Errorf("%s: got %q, %v; want %q", test.line, out, err, test.want)
				}
			}
		})
	}
	t.Run("zsh", func(t *testing.T) {
		if _, err := exec.LookPath("zsh"); err != nil {
			t.Skip("zsh is not installed")
		}
		for _, f := range []string{"_deadline", "_mcp"} {
			cmd := exec.Command("zsh", "-n", f)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", f, err, out)
			}
		}
	})
}

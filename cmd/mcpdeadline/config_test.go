package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "limits.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The limits of a tool are its own, else those for all tools, else the library's. A flag takes
// precedence over the file, and a host over everything.
func TestPolicy(t *testing.T) {
	const text = `{"total": "20m", "idle": "3m", "tools": {"build": {"total": "1h", "grace": "1s"}, "free": {"total": "0", "idle": "0s"}}}`
	limits := func(total, idle, grace time.Duration) timeout.Config {
		return timeout.Config{Total: total, Idle: idle, Grace: grace}
	}
	s, m, h := time.Second, time.Minute, time.Hour
	for _, tc := range []struct {
		name               string
		args               []string
		other, build, free timeout.Config
		cuts               int
	}{
		{"nothing", nil, timeout.Default(), timeout.Default(), timeout.Default(), 0},
		{"flags", []string{"-total", "1m", "-idle", "10s", "-grace", "2s"}, limits(m, 10*s, 2*s), limits(m, 10*s, 2*s), limits(m, 10*s, 2*s), 0},
		{"no grace", []string{"-grace", "0"}, limits(30*m, 2*m, -1), limits(30*m, 2*m, -1), limits(30*m, 2*m, -1), 0},
		{"nothing at all", []string{"-total", "0", "-idle", "0"}, timeout.Config{}, timeout.Config{}, timeout.Config{}, 0},
		{"a tool", []string{"-tool", "build:total=2h", "-tool", "build:idle=9m"}, timeout.Default(), limits(2*h, 9*m, 0), timeout.Default(), 0},
		{"the file", []string{"-config", "FILE"}, limits(20*m, 3*m, 0), limits(h, 3*m, s), timeout.Config{}, 0},
		{"flags before the file", []string{"-idle", "7s", "-tool", "build:grace=3s", "-config", "FILE"}, limits(20*m, 7*s, 0), limits(h, 7*s, 3*s), timeout.Config{}, 0},
		{"a host", []string{"-host", "zed"}, limits(50*s, 50*s, 0), limits(50*s, 50*s, 0), limits(50*s, 50*s, 0), 0},
		{"a host and the file", []string{"-host", "gemini-cli", "-config", "FILE"}, limits(590*s, 3*m, 0), limits(590*s, 3*m, s), limits(590*s, 0, 0), 3},
		{"a host that waits", []string{"-host", "claude-code", "-total", "9h"}, limits(9*h, 2*m, 0), limits(9*h, 2*m, 0), limits(9*h, 2*m, 0), 0},
		{"a host, and handles", []string{"-host", "zed", "-soft", "40s", "-tool", "free:soft=0,total=9s"}, timeout.Default(), timeout.Default(), limits(9*s, 9*s, 0), 0},
		{"a host, and handles that are too late", []string{"-host", "zed", "-soft", "2m"}, timeout.Default(), timeout.Default(), timeout.Default(), 1},
		{"less than the host's", []string{"-host", "zed", "-total", "9s"}, limits(9*s, 9*s, 0), limits(9*s, 9*s, 0), limits(9*s, 9*s, 0), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("MCP_TIMEOUT", "1") // the server's
			name := file(t, text)
			args := append([]string{}, tc.args...)
			for i, a := range args {
				args[i] = strings.Replace(a, "FILE", name, 1)
			}
			o, err := parse(append(args, "--", "x"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			p, cuts := o.policy()
			for tool, want := range map[string]timeout.Config{"other": tc.other, "build": tc.build, "free": tc.free} {
				got, err := p.Resolve(tool, 0)
				if d := cmp.Diff(want, got); d != "" || err != nil {
					t.Errorf("%s: %v\n%s", tool, err, d)
				}
			}
			if len(cuts) != tc.cuts {
				t.Errorf("%q", cuts)
			}
		})
	}
}

// The error of a bad setting names the setting, its value and what is accepted.
func TestBadSettings(t *testing.T) {
	const duration = `: want a duration such as "90s" or "1h30m", or "0" for none`
	t.Setenv("TWO_LINES", "a\nb")
	for _, tc := range []struct{ file, flags, want string }{
		{"", "-idle 5", `-idle="5"` + duration},
		{"", "-total -5s", `-total="-5s"` + duration},
		{"", "-grace x", `-grace="x"` + duration},
		{"", "-tool build", `-tool="build": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool :total=1s", `-tool=":total=1s": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool a:most=1s", `-tool="a:most=1s": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool a:total=1", `-tool a: total="1"` + duration},
		{"", "-host emacs", `-host="emacs": want one of claude-code, claude-desktop, cline, codex, gemini-cli, goose, opencode, vscode, zed`},
		{"", "-alive output", `-alive="output": want progress, log, stderr, cpu or io, separated by commas`},
		{"", "-url /mcp", `-url="/mcp": want a URL such as http://127.0.0.1:8137/mcp`},
		{"", "-header Authorization", `-header="Authorization": want NAME: VALUE, such as "Authorization: Bearer $TOKEN"`},
		{"", "-header A:$NO_SUCH_VARIABLE", `-header="A:$NO_SUCH_VARIABLE": want variables that are set; NO_SUCH_VARIABLE is not`},
		{"", "-url http://x/ --", `want one server, either -- COMMAND [ARG]... or -url URL`},
		{"", "server", `argument="server": want a command after --, as in mcpdeadline [FLAG]... -- COMMAND [ARG]...`},
		{"", "-header A(B:x", `-header="A(B:x": want NAME: VALUE, such as "Authorization: Bearer $TOKEN"`},
		{"", "-header A:$TWO_LINES", `-header="A:$TWO_LINES": want a value on one line after its variables are replaced`},
		{"", "-url http://x/ -alive cpu,stderr", `-alive="cpu,stderr": want progress or log, the only signs of a server at a -url`},
		{"", "-frobnicate", `flag provided but not defined: -frobnicate`},
		{"", "-declare=perhaps", `invalid boolean value "perhaps" for -declare: parse error`},
		{"", "-config /no/such/file", `-config: open /no/such/file: no such file or directory`},
		{"", "-config=", `-config="": want a value, or leave the flag out`},
		{"", "-log=", `-log="": want a value, or leave the flag out`},
		{"", "-log /no/such/directory/log", `-log: open /no/such/directory/log: no such file or directory`},
		{"", "-http 8137", `-http="8137": want an address such as "127.0.0.1:8137" or ":8137"`},
		{"", "-http=", `-http="": want a value, or leave the flag out`},
		{"", "-inspect localhost", `-inspect="localhost": want an address such as "127.0.0.1:8137" or ":8137"`},
		{`{`, "", `FILE: want one JSON object: unexpected EOF`},
		{`[]`, "", `FILE: want one JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`},
		{`null`, "", `FILE: want one JSON object: got null`},
		{`{} {}`, "", `FILE: want one JSON object: more follows the object`},
		{`{"Total": "1s"}`, "", `FILE: Total="1s": want one of the keys host, tools, grace, idle, soft, total`},
		{`{"total": 5}`, "", `FILE: total=5` + duration + `, in quotation marks`},
		{`{"total": null}`, "", `FILE: total=null` + duration + `, in quotation marks`},
		{`{"total": "5"}`, "", `FILE: total="5"` + duration},
		{`{"host": 5}`, "", `FILE: host="5": want one of claude-code, claude-desktop, cline, codex, gemini-cli, goose, opencode, vscode, zed`},
		{`{"tools": []}`, "", `FILE: tools=[]: want an object that maps names of tools to limits`},
		{`{"tools": null}`, "", `FILE: tools=null: want an object that maps names of tools to limits`},
		{`{"tools": {"a": null}}`, "", `FILE: tools.a=null: want an object with any of grace, idle, soft, total`},
		{`{"tools": {"a": "1s"}}`, "", `FILE: tools.a="1s": want an object with any of grace, idle, soft, total`},
		{`{"tools": {"a": {"idel": "1s"}}}`, "", `FILE: tools.a.idel="1s": want one of the keys grace, idle, soft, total`},
		{`{"tools": {"a": {"idle": true}}}`, "", `FILE: tools.a.idle=true` + duration + `, in quotation marks`},
	} {
		args := strings.Fields(tc.flags)
		if i := strings.Index(tc.flags, " "); i > 0 && strings.HasPrefix(tc.flags, "-tool") {
			args = []string{tc.flags[:i], tc.flags[i+1:]}
		}
		name := ""
		if tc.file != "" {
			name = file(t, tc.file)
			args = append(args, "-config", name)
		}
		switch {
		case strings.Contains(tc.flags, "--"):
			args = append(args, "x")
		case !strings.Contains(tc.flags, "-url http"):
			args = append(args, "--", "x")
		}
		var said strings.Builder
		code := run(t.Context(), args, strings.NewReader(""), io.Discard, &said)
		got := strings.TrimSuffix(said.String(), "Try 'mcpdeadline -help' for more information.\n")
		if want := "mcpdeadline: " + strings.ReplaceAll(tc.want, "FILE", name) + "\n"; got != want || code != exitUsage {
			t.Errorf("%s %s: %d, %q, want %q", tc.flags, tc.file, code, got, want)
		}
	}
}

// An address in use is reported before anything is done. So is a missing command, if there is no host
// over stdio to report it to.
func TestNothingHalfDone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, tc := range []struct {
		flags []string
		want  string // how what is said begins
		code  int
	}{
		{[]string{"-http", taken, "--", "x"}, `mcpdeadline: -http="` + taken + `": listen tcp ` + taken, exitUsage},
		{[]string{"-inspect", taken, "--", "x"}, `mcpdeadline: -inspect="` + taken + `": listen tcp ` + taken, exitUsage},
		{[]string{"-http", "127.0.0.1:0", "-inspect", taken, "--", self(t)}, `mcpdeadline: -inspect="` + taken + `": listen tcp ` + taken, exitUsage},
		{[]string{"-http", "127.0.0.1:0", "--", "/no/such/command"}, `mcpdeadline: cannot start the server: exec: "/no/such/command"`, 127},
	} {
		log := filepath.Join(t.TempDir(), "log")
		var said strings.Builder
		code := run(t.Context(), append([]string{"-log", log}, tc.flags...), strings.NewReader(""), io.Discard, &said)
		if !strings.HasPrefix(said.String(), tc.want) || strings.Count(said.String(), "\n") != 1 || code != tc.code {
			t.Errorf("%q: %d, %q, want %d, %q", tc.flags, code, said.String(), tc.code, tc.want)
		}
		if _, err := os.Stat(log); err == nil {
			t.Errorf("%q: there is a log", tc.flags)
		}
	}
}

// The hosts and their totals are those of the table in docs/hosts.md.
func TestHosts(t *testing.T) {
	text, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]time.Duration)
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || strings.HasPrefix(line, "| Host ") {
			continue
		}
		name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(cells[0], "| ")), " ", "-")
		if name == "vs-code" {
			name = "vscode"
		}
		got[name] = 0
		if _, total, found := strings.Cut(cells[3], "a total of "); found {
			if got[name], err = time.ParseDuration(strings.ReplaceAll(strings.TrimSuffix(total, " |"), " ", "")); err != nil {
				t.Error(err)
			}
		}
	}
	if d := cmp.Diff(hostTotals, got); d != "" {
		t.Error(d)
	}
}

func TestHelp(t *testing.T) {
	var said strings.Builder
	if code := run(t.Context(), []string{"-help"}, nil, &said, nil); code != 0 || !strings.HasPrefix(said.String(), "Usage: mcpdeadline [FLAG]... -- COMMAND") {
		t.Errorf("%d\n%s", code, said.String())
	}
}

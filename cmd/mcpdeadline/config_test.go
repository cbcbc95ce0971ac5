package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
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
// precedence over the file where both are for the tool, or both for all tools, and a host over everything.
func TestPolicy(t *testing.T) {
	const text = `{"timeout": "20m", "idle_timeout": 180, "tools": {"build": {"timeout": 3600, "grace": "1s", "env": "BUILD"}, "most": {"max_timeout": 9}, "free": {"timeout": 0, "idle_timeout": "0s"}, "late": {"max_timeout": "9h", "soft": 45}}}`
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
		{"under mcp", []string{"-config", "NESTED"}, limits(20*m, 3*m, 0), limits(h, 3*m, s), timeout.Config{}, 0},
		{"flags before the file", []string{"-idle", "7s", "-tool", "build:grace=3s", "-config", "FILE"}, limits(20*m, 7*s, 0), limits(h, 3*m, 3*s), timeout.Config{}, 0},
		{"a variable", []string{"-config", "FILE", "BUILD_TIMEOUT_MS=240000"}, limits(20*m, 3*m, 0), limits(4*m, 3*m, s), timeout.Config{}, 0},
		{"a variable, and a host", []string{"-config", "FILE", "-host", "codex", "BUILD_TIMEOUT_MS=300000"}, limits(20*m, 3*m, 0), limits(5*m, 3*m, s), timeout.Config{}, 0},
		{"a variable, and a host without handles", []string{"-config", "FILE", "-host", "codex", "-soft", "0", "BUILD_TIMEOUT_MS=300000"}, limits(290*s, 3*m, 0), limits(290*s, 3*m, s), limits(290*s, 0, 0), 3},
		{"negative", []string{"-config", "NEGATIVE"}, limits(0, 2*m, -s), limits(h, 0, -s), limits(0, 2*m, -s), 2},
		{"negative, and a host", []string{"-config", "NEGATIVE", "-host", "zed"}, limits(50*s, 50*s, -s), limits(50*s, 0, -s), limits(50*s, 50*s, -s), 4},
		{"a host", []string{"-host", "zed"}, limits(50*s, 50*s, 0), limits(50*s, 50*s, 0), limits(50*s, 50*s, 0), 0},
		{"a host and the file", []string{"-host", "gemini-cli", "-config", "FILE"}, limits(20*m, 3*m, 0), limits(h, 3*m, s), timeout.Config{}, 0},
		{"a host that waits", []string{"-host", "claude-code", "-total", "9h"}, limits(9*h, 32*m, 0), limits(9*h, 32*m, 0), limits(9*h, 32*m, 0), 0},
		{"a host that waits for a silent call", []string{"-host", "codex"}, limits(30*m, 7*m, 0), limits(30*m, 7*m, 0), limits(30*m, 7*m, 0), 0},
		{"a host that has been given more time", []string{"-host", "codex=20m"}, limits(30*m, 22*m, 0), limits(30*m, 22*m, 0), limits(30*m, 22*m, 0), 0},
		{"a host that has been given more than the preset", []string{"-host", "codex=2h"}, limits(2*h, 2*h, 0), limits(2*h, 2*h, 0), limits(2*h, 2*h, 0), 0},
		{"a host that has been given less time", []string{"-host", "cline=12s"}, limits(30*m, 132*s, 0), limits(30*m, 132*s, 0), limits(30*m, 132*s, 0), 0},
		{"a host without handles that has been given less time", []string{"-host", "zed=12s"}, limits(10*s, 10*s, 0), limits(10*s, 10*s, 0), limits(10*s, 10*s, 0), 0},
		{"a host that waits for progress", []string{"-host", "opencode=10s"}, limits(0, 130*s, 0), limits(0, 130*s, 0), limits(0, 130*s, 0), 0},
		{"a host that waits, with a limit of the user's", []string{"-host", "claude-code=1m"}, limits(30*m, 3*m, 0), limits(30*m, 3*m, 0), limits(30*m, 3*m, 0), 0},
		{"a host without limits", []string{"-host", "vscode"}, limits(0, 30*m, 0), limits(0, 30*m, 0), limits(0, 30*m, 0), 0},
		{"another", []string{"-host", "crush"}, limits(0, 30*m, 0), limits(0, 30*m, 0), limits(0, 30*m, 0), 0},
		{"a host with a long limit", []string{"-host", "qwen-code"}, limits(30*m, 12*m, 0), limits(30*m, 12*m, 0), limits(30*m, 12*m, 0), 0},
		{"a host, and a limit of the user's", []string{"-host", "codex", "-idle", "2m", "-tool", "build:idle=3m"}, limits(30*m, 2*m, 0), limits(30*m, 3*m, 0), limits(30*m, 2*m, 0), 0},
		{"a host, and handles that come late", []string{"-host", "codex", "-soft", "40s"}, limits(30*m, 7*m, 0), limits(30*m, 7*m, 0), limits(30*m, 7*m, 0), 0},
		{"a host, and handles", []string{"-host", "zed", "-soft", "40s", "-tool", "free:soft=0,total=9s"}, limits(30*m, 3*m, 0), limits(30*m, 3*m, 0), limits(9*s, 9*s, 0), 0},
		{"a host, and handles that are too late", []string{"-host", "zed", "-soft", "2m"}, limits(30*m, 3*m, 0), limits(30*m, 3*m, 0), limits(30*m, 3*m, 0), 1},
		{"less than the host's", []string{"-host", "zed", "-total", "9s"}, limits(9*s, 9*s, 0), limits(9*s, 9*s, 0), limits(9*s, 9*s, 0), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("MCP_TIMEOUT", "1") // the server's
			files := strings.NewReplacer("FILE", file(t, text), "NESTED", file(t, `{"log": null, "mcp": `+text+`}`),
				"NEGATIVE", file(t, `{"timeout": -1, "grace": -1, "tools": {"build": {"timeout": "1h", "idle_timeout": -5}}}`))
			var args []string
			for _, a := range tc.args {
				if name, value, ok := strings.Cut(a, "="); ok && strings.HasSuffix(name, "_TIMEOUT_MS") {
					t.Setenv(name, value)
					continue
				}
				args = append(args, files.Replace(a))
			}
			o, err := parse(append(args, "--", "x"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			p, cuts, err := o.policy()
			if err != nil {
				t.Fatal(err)
			}
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
	t.Setenv("SOON_TIMEOUT_MS", "soon")
	for _, tc := range []struct{ file, flags, want string }{
		{"", "-idle 5", `-idle="5"` + duration},
		{"", "-total -5s", `-total="-5s"` + duration},
		{"", "-grace x", `-grace="x"` + duration},
		{"", "-tool build", `-tool="build": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool :total=1s", `-tool=":total=1s": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool a:most=1s", `-tool="a:most=1s": want NAME:KEY=DURATION,... with keys of grace, idle, soft, total, such as "build:total=1h,idle=5m"`},
		{"", "-tool a:total=1", `-tool a: total="1"` + duration},
		{"", "-host emacs", `-host="emacs": want one of claude-code, claude-desktop, cline, codex, continue, crush, gemini-cli, goose, none, opencode, qwen-code, vscode, zed`},
		{"", "-host zed=5", `-host zed="5"` + duration},
		{"", "-alive output", `-alive="output": want progress, log, stderr, notify, cpu or io, separated by commas`},
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
		{"", "-host-pid codex", `-host-pid="codex": want the id of a process, or 0`},
		{"", "-host-pid -1", `-host-pid="-1": want the id of a process, or 0`},
		{"", "-host-pid 0 -http :0", `-host-pid: want no -http, with which hosts come and go`},
		{"", "-inspect localhost", `-inspect="localhost": want an address such as "127.0.0.1:8137" or ":8137"`},
		{`{`, "", `FILE: unexpected end of JSON input`},
		{`{} {}`, "", `FILE: invalid character '{' after top-level value`},
		{`[]`, "", `FILE: timeout: policy="[]": want an object such as {"timeout": 1800, "tools": {"build": {"timeout": 600}}}`},
		{`{"host": "zed", "idle-timeout": 5}`, "", `FILE: timeout: idle-timeout="5": want the key idle_timeout`},
		{`{"timeout": true}`, "", `FILE: timeout: timeout="true": want seconds as a number up to 9223372036, such as 120 or 0.5, no finer than a nanosecond, or a duration in quotation marks, such as "30m"`},
		{`{"mcp": {"tools": {"a": {"idel_timeout": "1s"}}}}`, "", `FILE: timeout: mcp.tools.a.idel_timeout="\"1s\"": want the key idle_timeout`},
		{`{"tools": {"a": {"env": "SOON"}}}`, "", `timeout: SOON_TIMEOUT_MS="soon": want milliseconds as a whole number from 0 (off) to 9223372036854, such as 120000`},
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
		code := machine.run(t.Context(), args, strings.NewReader(""), io.Discard, &said)
		got := strings.TrimSuffix(said.String(), "Try 'mcpdeadline --help' for more information.\n")
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
		code := machine.run(t.Context(), append([]string{"-log", log}, tc.flags...), strings.NewReader(""), io.Discard, &said)
		if !strings.HasPrefix(said.String(), tc.want) || strings.Count(said.String(), "\n") != 1 || code != tc.code {
			t.Errorf("%q: %d, %q, want %d, %q", tc.flags, code, said.String(), tc.code, tc.want)
		}
		if _, err := os.Stat(log); err == nil {
			t.Errorf("%q: there is a log", tc.flags)
		}
	}
}

// Three keep-alives come within the time for which the host waits, and one at least every 10 s.
func TestKeepAliveDefault(t *testing.T) {
	for _, tc := range []struct {
		args string
		want time.Duration
	}{
		{"", 10 * time.Second},
		{"-host opencode", 10 * time.Second},
		{"-host opencode=12s", 4 * time.Second},
		{"-host vscode", 10 * time.Second},
		{"-host codex -total 9s", 3 * time.Second},
		{"-host opencode -total 9s", 10 * time.Second},
		{"-total 9s", 3 * time.Second},
		{"-total 30s", 10 * time.Second},
		{"-total 29s", 29 * time.Second / 3},
		{"-total 0", 10 * time.Second},
		{"-total 9s -keep-alive 7s", 7 * time.Second},
		{"-total 9s -keep-alive 0", 0},
	} {
		o, err := parse(append(strings.Fields(tc.args), "--", "x"), io.Discard)
		if err != nil || o.keepAlive() != tc.want {
			t.Errorf("%s: %v, %v", tc.args, o, err)
		}
	}
}

// A soft limit is the tool's in a flag, the tool's in the file, or that for all tools. It is cut to the
// time for which the host waits.
func TestSoft(t *testing.T) {
	const text = `{"tools": {"late": {"soft": 45}, "at once": {"soft": -1}, "only": {"task_only": true}, "other": {"timeout": 5}}}`
	type soft struct {
		After time.Duration
		Only  bool
	}
	for _, tc := range []struct {
		name    string
		args    []string
		want    map[string]soft
		handles bool
		cuts    int
	}{
		{"nothing", nil, map[string]soft{"late": {}, "": {}}, false, 0},
		{"the file", []string{"-config", "FILE"}, map[string]soft{"late": {After: 45 * time.Second}, "at once": {After: -time.Second}, "only": {-1, true}, "other": {}, "": {}}, true, 0},
		{"all tools", []string{"-config", "FILE", "-soft", "9s"}, map[string]soft{"late": {After: 45 * time.Second}, "at once": {After: -time.Second}, "only": {-1, true}, "other": {After: 9 * time.Second}, "": {After: 9 * time.Second}}, true, 0},
		{"a tool", []string{"-config", "FILE", "-tool", "late:soft=0"}, map[string]soft{"late": {}}, true, 0},
		{"a host", []string{"-config", "FILE", "-host", "zed", "-tool", "other:soft=2m"}, map[string]soft{"late": {After: 45 * time.Second}, "other": {After: 50 * time.Second}}, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := file(t, text)
			args := []string{}
			for _, a := range tc.args {
				args = append(args, strings.ReplaceAll(a, "FILE", name))
			}
			o, err := parse(append(args, "--", "x"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			for tool, want := range tc.want {
				var got soft
				if got.After, got.Only = o.softOf(tool); max(got.After, -1) != max(want.After, -1) || got.Only != want.Only {
					t.Errorf("%q: %+v, want %+v", tool, got, want)
				}
			}
			if _, cuts, err := o.policy(); len(cuts) != tc.cuts || err != nil || o.handles() != tc.handles {
				t.Errorf("%q, %v, %v", cuts, err, o.handles())
			}
		})
	}
}

// A file that does not open ends the wait for it.
func TestFileLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens, begun := make(chan struct{}), time.Now()
		defer close(opens)
		_, err := within(t.Context(), "-log", func() (int, error) { <-opens; return 0, nil })
		if took := time.Since(begun); took != fileLimit || err == nil || err.Error() != "-log: the file did not open within 10s" {
			t.Errorf("%v after %v", err, took)
		}
	})
}

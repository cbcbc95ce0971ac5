//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
)

func TestRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	if a, text := s.call("run", args{"command": "echo out; echo err >&2; exit 3"}); exit(a) != 3 || a.Output != "out\nerr\n" || a.Reason != "exited" || a.State != ended ||
		!strings.HasPrefix(text, "Exit code 3 after ") || !strings.HasSuffix(text, "\n\nout\nerr\n") {
		t.Errorf("%+v\n%s", a, text)
	}
	if a, _ := s.call("run", args{"command": "pwd", "dir": "."}); a.Output != s.server.cmd.Args[8]+"\n" {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("run", args{"command": "cat; echo .", "input": "one\ntwo"}); a.Output != "one\ntwo.\n" || exit(a) != 0 {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("run", args{"command": "cat", "input": ""}); a.Output != "" || exit(a) != 0 {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("run", args{"command": "test -t 0 && test -t 1 && echo $TERM", "tty": true}); a.Output != "xterm-256color\n" {
		t.Errorf("%+v", a)
	}
}

// Wrong values are refused with the key, the value and what is accepted, and nothing is started.
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := start(t, "-max-timeout", "1h")
	for _, tt := range []struct {
		tool string
		in   args
		want []string
	}{
		{"run", args{}, []string{"command"}},
		{"run", args{"command": ""}, []string{"command"}},
		{"run", args{"command": " \n"}, []string{"command is empty"}},
		{"run", args{"command": "a\x00b"}, []string{"command has a NUL"}},
		{"run", args{"command": strings.Repeat("a", 100_001)}, []string{"command", "100000"}},
		{"run", args{"command": "true", "dir": "nowhere"}, []string{"dir: ", "nowhere", "no such file"}},
		{"run", args{"command": "true", "dir": "/dev/null"}, []string{"dir: /dev/null is not a directory"}},
		{"run", args{"command": "true", "wait_s": -1}, []string{"wait_s", "-1", "0"}},
		{"run", args{"command": "true", "wait_s": 601}, []string{"wait_s", "601", "600"}},
		{"run", args{"command": "true", "wait_s": "5"}, []string{"wait_s", "number"}},
		{"run", args{"command": "true", "timeout_s": 0}, []string{"timeout_s", "0.001"}},
		{"run", args{"command": "true", "timeout_s": 3601}, []string{"timeout_s", "3601", "3600"}},
		{"run", args{"command": "true", "idle_s": -1}, []string{"idle_s", "-1"}},
		{"run", args{"command": "true", "max_chars": 499}, []string{"max_chars", "499", "500"}},
		{"run", args{"command": "true", "max_chars": 1e9}, []string{"max_chars", "200000"}},
		{"run", args{"command": "true", "timeout": 3}, []string{"timeout"}},
		{"job_read", args{"job": 1}, []string{"job 1: there is no such job"}},
		{"job_read", args{"job": 0}, []string{"job", "0", "1"}},
		{"job_read", args{"job": "1"}, []string{"job", "integer"}},
		{"job_read", args{"job": 1, "cursor": -1}, []string{"cursor", "-1"}},
		{"job_write", args{"job": 1, "text": "x"}, []string{"job 1: there is no such job"}},
		{"job_signal", args{"job": 1, "signal": "SIGKILL"}, []string{"signal", "SIGKILL", "interrupt"}},
	} {
		got := s.fails(tt.tool, tt.in)
		for _, w := range tt.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s %.100v: %q, want %q", tt.tool, fmt.Sprint(tt.in), got, w)
			}
		}
	}
	s.call("run", args{"command": "true"})
	for _, tt := range []struct {
		tool string
		in   args
		want string
	}{
		{"job_read", args{"job": 1, "until": "("}, "want a regular expression"},
		{"job_read", args{"job": 1, "until": strings.Repeat("x{1000}", 9)}, "want fewer repetitions"},
		{"job_write", args{"job": 1}, "want text, or end true"},
	} {
		if got := s.fails(tt.tool, tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	logged := func() int { return strings.Count(s.server.String(), `"msg":"start"`) }
	harness.Eventually(t, "the start to be logged", func() bool { return logged() > 0 }) // that is read beside the answers
	if logged() != 1 {
		t.Errorf("%s", s.server)
	}
}

// A command that outlives its call is a job: it is read from where the last answer ended, answered, interrupted and
// stopped, and says how it has ended also to one that writes too late.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, text := s.call("run", args{"command": "echo one; while read x; do echo got $x; done; echo bye; sleep 600", "wait_s": 60})
	if a.State != waiting && runtime.GOOS == "linux" || a.Output != "one\n" || !strings.Contains(text, `job_write with {"job":1,`) {
		t.Fatalf("%+v\n%s", a, text)
	}
	if a, _ := s.call("job_write", args{"job": 1, "text": "two\n", "wait_s": 60}); a.Output != "got two\n" {
		t.Errorf("%+v", a)
	}
	a, text = s.call("job_write", args{"job": 1, "end": true, "wait_s": 0})
	if a.Output == "" {
		a, text = s.call("job_read", args{"job": 1, "until": "bye"})
	}
	if a.Output != "bye\n" {
		t.Errorf("%+v\n%s", a, text)
	}
	harness.Eventually(t, "the wait for input to be over", func() bool { // on a busy machine, that it waits no more is seen seconds later
		a, text = s.call("job_read", args{"job": 1, "wait_s": 0})
		return a.State == running
	})
	if !strings.Contains(text, `call job_read with {"job":1}`) {
		t.Error(text)
	}
	if got := s.fails("job_write", args{"job": 1, "text": "x"}); !strings.Contains(got, "the input of job 1 is closed") {
		t.Error(got)
	}
	if a, _ := s.call("job_read", args{"job": 1, "cursor": 0}); a.Output != "one\ngot two\nbye\n" {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("job_read", args{"job": 1, "wait_s": 0}); a.Output != "" || a.State != running {
		t.Errorf("%+v", a)
	}
	var all list
	if _, _, err := s.ask(t.Context(), "job_list", args{}, &all); err != nil || len(all.Jobs) != 1 || all.Jobs[0].State != running || !strings.HasPrefix(all.Jobs[0].Command, "echo one") {
		t.Errorf("%+v, %v", all, err)
	}
	if a, _ := s.call("job_signal", args{"job": 1, "signal": "stop"}); a.Reason != "aborted" || exit(a) != 130 {
		t.Errorf("%+v", a)
	}
	if a, text := s.call("job_write", args{"job": 1, "text": "late\n"}); a.State != ended || !strings.HasPrefix(text, "Stopped: aborted, exit code 130") {
		t.Errorf("%+v\n%s", a, text)
	}
}

// The limits of a command hold after its call, and the answer says which one has stopped it.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t, "-output", "1", "-jobs", "2")
	s.call("run", args{"command": "echo x; sleep 600", "timeout_s": 2, "wait_s": 0})
	s.call("run", args{"command": "sleep 600", "idle_s": 2, "wait_s": 0})
	if a, text := s.call("job_read", args{"job": 1}); a.Reason != "total timeout" || exit(a) != 124 || !strings.Contains(text, "timed out after 2000ms") {
		t.Errorf("%+v\n%s", a, text)
	}
	if a, _ := s.call("job_read", args{"job": 2}); a.Reason != "idle timeout" || exit(a) != 124 {
		t.Errorf("%+v", a)
	}
	if a, _ := s.call("run", args{"command": "yes"}); a.Reason != "too much output" || exit(a) != 153 {
		t.Errorf("%+v", a.Reason)
	}
	for range 2 {
		s.call("run", args{"command": "sleep 600", "wait_s": 0})
	}
	if got := s.fails("run", args{"command": "true"}); !strings.Contains(got, "2 commands are running, and this server allows no more") {
		t.Error(got)
	}
	s.call("job_signal", args{"job": 4, "signal": "kill"})
	s.call("job_read", args{"job": 4}) // until it has ended
	if a, _ := s.call("run", args{"command": "true"}); exit(a) != 0 {
		t.Errorf("%+v", a)
	}
}

// Output that does not fit is counted, and can be read.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, text := s.call("run", args{"command": "seq 20000", "max_chars": 1000})
	if a.LeftOut == nil || !strings.HasPrefix(a.Output, "1\n2\n") || !strings.HasSuffix(a.Output, "\n20000\n") || !strings.Contains(text, "All of the output: ") || len(a.Output) > 1200 {
		t.Fatalf("%+v", a)
	}
	head, tail, _ := strings.Cut(a.Output, "[")
	_, tail, _ = strings.Cut(tail, "]\n")
	got := head
	for at := a.LeftOut.Cursor; at < a.LeftOut.Cursor+a.LeftOut.Bytes; {
		p, _ := s.call("job_read", args{"job": 1, "cursor": at, "max_chars": 200_000})
		at = p.Cursor
		got += p.Output[:strings.LastIndexByte(strings.Split(p.Output, "[")[0], '\n')+1]
	}
	if file, err := os.ReadFile(a.File); err != nil || got != string(file) || !strings.HasSuffix(got, tail) {
		t.Errorf("%d bytes of %d: %v", len(got), len(file), err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(strings.Split(head, "\n")[strings.Count(head, "\n")-1]))
	first, _ := strconv.Atoi(strings.Split(tail, "\n")[0])
	if a.LeftOut.Lines != first-n-1 {
		t.Errorf("%d lines, want %d", a.LeftOut.Lines, first-n-1)
	}
}

// Secrets of the server's environment are neither passed on nor in its memory.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	p := server(t, "-env", "PASSED_*", "-env", "SET=as said", "-env", "HOME=/nowhere")
	p.cmd.Env = append(p.cmd.Env, "API_KEY=secret-1", "PASSED_ON=yes", "SET=not this", "LC_ALL=C")
	s := connect(t, p, "2025-11-25", &mcp.CommandTransport{Command: p.cmd, TerminateDuration: generous})
	defer s.Close()
	a, _ := s.call("run", args{"command": "env | sort; cat /proc/$PPID/environ /proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/environ | tr '\\0' '\\n'"})
	for _, want := range []string{"PASSED_ON=yes\n", "SET=as said\n", "LC_ALL=C\n", "PATH=", "HOME=/nowhere\n", "GIT_TERMINAL_PROMPT=0\n"} {
		if !strings.Contains(a.Output, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"API_KEY", "secret-1", "not this"} {
		if strings.Contains(a.Output, not) {
			t.Errorf("%q is there:\n%s", not, a.Output)
		}
	}
}

// Neither a command nor its output can make a line of the log, and typed input is not in it.
func TestLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	s := start(t, "-log", file)
	s.call("run", args{"command": "read x # \n{\"level\":\"ERROR\",\"msg\":\"forged\"}\n\x1b[2J", "wait_s": 5})
	s.call("job_write", args{"job": 1, "text": "hunter2\n"})
	var b []byte
	harness.Eventually(t, "the end to be logged", func() bool { // the end is logged beside the answer
		b, _ = os.ReadFile(file)
		return strings.Count(string(b), "\n") >= 3
	})
	info, _ := os.Stat(file)
	if lines := strings.Split(strings.TrimSpace(string(b)), "\n"); len(lines) != 3 && len(lines) != 4 || strings.Contains(string(b), "hunter2") || strings.Contains(string(b), "\x1b") || info.Mode().Perm() != 0o600 {
		t.Errorf("%v\n%s", info.Mode(), b)
	}
}

// A call that its client takes back ends its command; one that only reads does not.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	started := func(n int) func() bool {
		return func() bool { return strings.Count(s.server.String(), `"msg":"start"`) == n }
	}
	s.call("run", args{"command": "echo 1; sleep 601", "wait_s": 0})
	harness.Eventually(t, "the first command to be logged", started(1)) // that is read beside the answer
	for _, tool := range []string{"run", "job_read"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			if tool == "run" {
				harness.Eventually(t, "the command to start", started(2))
			} else {
				time.Sleep(50 * time.Millisecond) // nothing tells when it reads
			}
			cancel()
		}()
		if _, _, err := s.ask(ctx, tool, map[string]args{"run": {"command": "sleep 602"}, "job_read": {"job": 1}}[tool], new(answer)); err == nil {
			t.Error("the call was not cancelled")
		}
	}
	var all list
	harness.Eventually(t, "the job to end", func() bool {
		_, _, err := s.ask(t.Context(), "job_list", args{}, &all)
		return err == nil && len(all.Jobs) == 2 && all.Jobs[1].State == ended
	})
	if all.Jobs[0].State != running || all.Jobs[1].Reason != "aborted" {
		t.Errorf("%+v", all)
	}
}

// A client that waits hears what the command writes and asks.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := start(t)
	held, release := gate(t)
	go func() {
		harness.Eventually(t, "the client to hear of step 4", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return strings.Contains(strings.Join(s.heard, "\n"), "step 4")
		})
		release()
	}()
	if a, _ := s.call("run", args{"command": "for i in 1 2 3 4; do echo step $i; done; " + held, "wait_s": 600}); exit(a) != 0 {
		t.Errorf("%+v", a)
	}
}

// A client that goes ends its jobs.
func TestClientGone(t *testing.T) {
	t.Parallel()
	p := server(t)
	s := connect(t, p, "2025-11-25", &mcp.CommandTransport{Command: p.cmd, TerminateDuration: generous})
	s.call("run", args{"command": "sleep 600", "wait_s": 0})
	if err := s.Close(); err != nil {
		t.Errorf("%v\n%s", err, p)
	}
	harness.None(t, p.mark)
	if !strings.Contains(p.String(), `"msg":"end"`) {
		t.Errorf("%s", p)
	}
}

// A client of any protocol keeps its jobs from one call to the next.
func TestProtocols(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := server(t)
			s := connect(t, p, protocol, &mcp.CommandTransport{Command: p.cmd, TerminateDuration: generous})
			s.call("run", args{"command": "read x; echo got $x", "wait_s": 0})
			if a, _ := s.call("job_write", args{"job": 1, "text": "it\n"}); a.Output != "got it\n" || exit(a) != 0 {
				t.Errorf("%+v", a)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			harness.None(t, p.mark)
		})
	}
}

// A model that writes to a job or signals it after its end learns that this had no effect. A cursor that is too large
// is refused with its name.
func TestTooLate(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.call("run", args{"command": "exit 3"})
	const want = "Job 1 has ended: nothing was written."
	for _, in := range []args{{"job": 1, "text": "it\n"}, {"job": 1, "end": true}} {
		if a, text := s.call("job_write", in); exit(a) != 3 || a.Message != want || !strings.Contains(text, want) {
			t.Errorf("%+v\n%s", a, text)
		}
	}
	if a, text := s.call("job_signal", args{"job": 1, "signal": "stop"}); exit(a) != 3 || !strings.Contains(text, "Job 1 had ended before the signal.") {
		t.Errorf("%+v\n%s", a, text)
	}
	if got := s.fails("job_read", args{"job": 1, "cursor": 1e19}); !strings.Contains(got, "/properties/cursor: maximum") {
		t.Error(got)
	}
}

// SPEC 6.23: processes that were killed after exit code 0 are in the text, in the structured content and in the log.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a helper")
	}
	s := start(t)
	a, text := s.call("run", args{"command": "setsid sh -c 'touch up; exec sleep 600' >/dev/null 2>&1 & until [ -e up ]; do sleep .02; done"})
	if exit(a) != 0 || !strings.HasPrefix(a.Leftovers, "Killed because the command had ended: s") || !strings.Contains(text, a.Leftovers) || !strings.Contains(a.Next, "without &") {
		t.Errorf("%+v\n%s", a, text)
	}
	harness.Eventually(t, "what was left to be logged", func() bool { return strings.Contains(s.server.String(), `"leftovers":"`+a.Leftovers+`\n"`) })
}

// One client may run as many commands as the server allows, also if these are more than the jobs that are usually kept.
func TestManyJobs(t *testing.T) {
	if !full() {
		t.Skip("starts 66 commands; set SHELL_ATTACK_FULL")
	}
	t.Parallel()
	s := start(t, "-jobs", "66")
	for range 66 {
		s.call("run", args{"command": "exec sleep 600", "wait_s": 0})
	}
	if got := s.fails("run", args{"command": "true"}); !strings.Contains(got, "66 commands are running") {
		t.Error(got)
	}
}

// gate returns a shell command that waits until release is called.
func gate(t *testing.T) (held string, release func()) {
	file := filepath.Join(t.TempDir(), "go")
	return "until [ -e " + file + " ]; do sleep .02; done", func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

// Flags that make no sense are said to.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-dir", "/nowhere"}, 2, "-dir: stat /nowhere"},
		{[]string{"-shell", "nosuchshell"}, 2, "-shell: "},
		{[]string{"-jobs", "0"}, 2, "-jobs 0: want 1 to 1000"},
		{[]string{"-memory", "-1"}, 2, "-memory -1: want 0 to"},
		{[]string{"-max-timeout", "1ms"}, 2, "-max-timeout 1ms: want 1s or more"},
		{[]string{"-env", "=x"}, 2, "want NAME, NAME=VALUE or a pattern"},
		{[]string{"-env", "[x"}, 2, "want NAME, NAME=VALUE or a pattern"},
		{[]string{"x"}, 2, `argument "x": want none`},
		{[]string{"-h"}, 0, "-max-timeout"},
	} {
		p := server(t, tt.args...)
		if code := p.code(t); code != tt.code || !strings.Contains(p.String(), tt.want) {
			t.Errorf("%q: exit code %d\n%s", tt.args, code, p)
		}
	}
}

//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// hang prints "ready" and a part of a line, and hangs in a function with a name that is looked for.
func hang(a []string) int {
	fmt.Print(strings.Join(append([]string{"ready\nhalf"}, a...), " "))
	hangsHere()
	return 0
}

//go:noinline
func hangsHere() { time.Sleep(forever) }

// quit handles SIGQUIT: it prints the first argument, and as many megabytes as the second says, and goes on. A third
// argument says what it does first so that it may not be examined by others.
func quit(a []string) int {
	if len(a) > 2 {
		var err error
		switch a[2] {
		case "root":
			err = syscall.Setresuid(0, 0, 0)
		case "user":
			err = syscall.Setresuid(65532, 65532, 65532)
		case "undumpable":
			err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		}
		if err != nil {
			panic(err)
		}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGQUIT)
	fmt.Print("ready\n")
	<-c
	fmt.Print(a[0])
	line := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range atoi(a[1]) {
		_, _ = os.Stdout.Write(line)
	}
	hangsHere()
	return 0
}

// whenSilent are the options by which a command is stopped when it has got to where it hangs.
func whenSilent(idle time.Duration, more ...procgroup.Option) []procgroup.Option {
	return append([]procgroup.Option{
		procgroup.WithLimits(timeout.Config{Idle: idle}), procgroup.WithOptions(timeout.WithName("tool")), procgroup.WithStacks(),
	}, more...)
}

// checkStacks checks that a limit has stopped the command, that the stacks have all the texts, and that they are where
// they should be and nowhere else.
func checkStacks(t *testing.T, r *procgroup.Result, err error, texts ...string) {
	t.Helper()
	var stop *timeout.Error
	if r == nil {
		t.Fatal(err)
	}
	if !errors.As(err, &stop) || !errors.Is(err, timeout.ErrIdle) || r.ExitCode != 124 || r.Reason != procgroup.IdleTimeout {
		t.Fatalf("%v, %v, exit code %d", err, r.Reason, r.ExitCode)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stacks.Text(), text) {
			t.Errorf("no %q in the stacks:\n%s", text, r.Stacks)
		}
		if !bytes.Contains(stop.Stack, []byte(text)) || !strings.Contains(fmt.Sprintf("%+v", err), text) {
			t.Errorf("no %q in the error:\n%+v", text, err)
		}
		if strings.Contains(r.Text(), text) || strings.Contains(r.Stdout.String()+r.Stderr.String(), text) {
			t.Errorf("%q in the output:\n%s", text, r.Text())
		}
	}
	if !strings.HasPrefix(string(stop.Stack), "PID ") {
		t.Errorf("no list of processes in the error:\n%s", stop.Stack)
	}
	if r.Combined.Total != r.Stdout.Total+r.Stderr.Total && !bytes.Equal(r.Combined.Bytes(), r.Stdout.Bytes()) {
		t.Errorf("%d bytes, and %d in the streams", r.Combined.Total, r.Stdout.Total+r.Stderr.Total)
	}
}

// runForStacks runs a command that is stopped by an idle limit, and runs it again with a longer one where the machine is so
// busy that its program has not got to where it hangs, or has not written all of its stacks in its 200 ms.
func runForStacks(idle time.Duration, text string, make func() *exec.Cmd, opts ...procgroup.Option) (r *procgroup.Result, err error) {
	for try := range 5 {
		if r, err = procgroup.Run(context.Background(), make(), append(whenSilent(idle<<try), opts...)...); r != nil && strings.Contains(r.Stacks.Text(), text) {
			break
		}
	}
	return r, err
}

// SPEC 6.22: a Go program writes its stacks in every containment, through a pipe and on a terminal, whether it is the
// command itself or a grandchild. The stacks are not part of the output, the outcome is still that of the limit, and
// the Finished hook gets the stacks.
func TestStacksOfGo(t *testing.T) {
	t.Parallel()
	everyContainment(t, func(t *testing.T, contained procgroup.Option) {
		t.Parallel()
		for _, tt := range []struct {
			name, output string
			opts         []procgroup.Option
		}{
			{"pipes", "ready\nhalf", nil},
			{"one pipe", "ready\nhalf", []procgroup.Option{procgroup.WithOnePipe()}},
			{"terminal", "ready\r\nhalf", []procgroup.Option{procgroup.WithTerminal(24, 80)}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				for name, args := range map[string][]string{
					"leader":     {plain()},
					"grandchild": {"sh", "-c", `(setsid -w "$0"; :); :`, plain()},
				} {
					if name == "grandchild" && strings.Contains(t.Name(), "/group/") {
						continue // it has left the group, and would stay
					}
					var told []byte
					hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { told = s.Stack }}
					opts := append([]procgroup.Option{contained, procgroup.WithOptions(timeout.WithHooks(hooks))}, tt.opts...)
					r, err := runForStacks(1500*time.Millisecond, "hangsHere", func() *exec.Cmd {
						cmd := exec.Command(args[0], args[1:]...)
						cmd.Env = append(os.Environ(), modeEnv+"=hang")
						return cmd
					}, opts...)
					checkStacks(t, r, err, "SIGQUIT: quit", "hangsHere")
					checkSystem(t, r)
					if got := r.Stdout.String(); got != tt.output || r.Stderr.Total != 0 {
						t.Errorf("%s: %q, %q", name, got, r.Stderr)
					}
					if !bytes.Contains(told, []byte("hangsHere")) {
						t.Errorf("%s: the hook got\n%s", name, told)
					}
				}
			})
		}
	})
}

// SPEC 6.22: a JVM writes its stacks, goes on until it is asked to end, and what it prints before and after is output.
func TestStacksOfJava(t *testing.T) {
	needs(t, "java")
	needs(t, "javac")
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "Hang.java")
	if err := os.WriteFile(file, []byte(`public class Hang {
		static void hangsHere() throws Exception { Thread.sleep(120000); }
		public static void main(String[] args) throws Exception {
			Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("bye")));
			System.out.println("ready");
			hangsHere();
		}
	}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("javac", "-d", dir, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct {
		name, end string
		opts      []procgroup.Option
	}{{"pipes", "\n", nil}, {"terminal", "\r\n", []procgroup.Option{procgroup.WithTerminal(24, 80)}}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := runForStacks(8*time.Second, "Hang.hangsHere", func() *exec.Cmd { return exec.Command("java", "-cp", dir, "Hang") }, append(tt.opts, procgroup.WithKillGrace(longLimit))...)
			checkStacks(t, r, err, "Full thread dump", "Hang.hangsHere", "Heap")
			if got, want := r.Stdout.String(), "ready"+tt.end+"bye"+tt.end; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("-Xrs", func(t *testing.T) { // SIGQUIT would end it without a word, and without its hook
		t.Parallel()
		r, err := procgroup.Run(context.Background(), exec.Command("java", "-Xrs", "-cp", dir, "Hang"), whenSilent(20*time.Second)...)
		if checkStacks(t, r, err); r.Stacks.Total != 0 || r.State.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
			t.Errorf("%v, %d bytes of stacks", r.State, r.Stacks.Total)
		}
	})
}

// SPEC 6.22: Python writes its stacks if its fault handler is on, and gets nothing but the request to end otherwise.
func TestStacksOfPython(t *testing.T) {
	needs(t, "python3")
	t.Parallel()
	const script = "import sys, time\ndef hangs_here(): time.sleep(120)\nprint('ready', flush=True)\nhangs_here()"
	for _, tt := range []struct {
		name, variable string
		args           []string
		written        string
	}{
		{"on", "1", nil, "hangs_here"},
		{"off", "", nil, ""},
		{"ignored", "1", []string{"-I"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			python := func() *exec.Cmd {
				cmd := exec.Command("python3", append(tt.args, "-c", script)...)
				cmd.Env = append(os.Environ(), "PYTHONFAULTHANDLER="+tt.variable)
				return cmd
			}
			r, err := runForStacks(20*time.Second, tt.written, python)
			if checkStacks(t, r, err); tt.written != "" {
				checkStacks(t, r, err, "Fatal Python error: Aborted", tt.written)
			}
			if got := r.Stdout.String(); got != "ready\n" {
				t.Errorf("%q", got)
			}
			if sig := r.State.Sys().(syscall.WaitStatus).Signal(); (sig == unix.SIGABRT) != (tt.written != "") {
				t.Errorf("it died of %v", sig)
			}
		})
	}
}

// SPEC 6.22: a handler of SIGABRT that is not the fault handler is not called, whatever the environment says; nor are
// handlers of all its signals, if the environment does not say that it is the fault handler.
func TestStacksOfPythonWithItsOwnHandler(t *testing.T) {
	needs(t, "python3")
	t.Parallel()
	const script = "import signal, sys, time\nfor s in sys.argv[1:]: signal.signal(getattr(signal, s), lambda *a: print('removed', flush=True))\nprint('ready', flush=True)\ntime.sleep(120)"
	for name, tt := range map[string]struct{ variable, signals string }{
		"ignored environment": {"1", "SIGABRT"},
		"all signals":         {"", "SIGABRT SIGSEGV SIGFPE SIGBUS SIGILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("python3", append([]string{"-I", "-c", script}, strings.Fields(tt.signals)...)...)
			cmd.Env = append(os.Environ(), "PYTHONFAULTHANDLER="+tt.variable)
			r, err := procgroup.Run(context.Background(), cmd, whenSilent(20*time.Second)...)
			if checkStacks(t, r, err); r.Stdout.String() != "ready\n" {
				t.Errorf("%q", r.Stdout)
			}
		})
	}
}

// SPEC 6.22: a program of another user is asked if this program may examine it, as root may. One that may be signalled but
// not examined gets no signal but the request to end, and beside it those that may be examined are asked. What may not
// even be ended is a survivor.
func TestStacksOfOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes programs of other users")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("/var/tmp", "stacks") // the folders of testing are this user's only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const root, host, other = 0, 65532, 65533
	programs := make(map[string]string)
	for name, owner := range map[string]int{"host": -1, "plain": -1, "other's": other, "root's": root} {
		path := filepath.Join(dir, name)
		programs[name] = path
		from := plain()
		if name == "host" {
			from = os.Args[0]
		}
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeProgram(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
		if owner >= 0 {
			if err := errors.Join(os.Chown(path, owner, owner), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name             string
		host             uint32
		program, becomes string // see quit
		beside           string // the program of a child
		want             string
	}{
		{"its own", host, "plain", "", "", "asked"},
		{"another user's, by root", root, "plain", "user", "", "asked"},
		{"another user's", host, "other's", "", "", "not asked"},
		{"root's", host, "root's", "", "", "not asked"},
		{"root's, which may not be ended", host, "root's", "root", "", "not asked, survives"},
		{"one that hides its memory", host, "plain", "undumpable", "", "not asked"},
		{"its own beside root's", host, "plain", "", "root's", "asked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for left := 4; ; left-- {
				cmd := exec.Command(programs["host"], programs[tt.program], tt.becomes, programs[tt.beside])
				cmd.Env = append(os.Environ(), modeEnv+"=watched")
				cmd.Dir = dir
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: tt.host, Gid: tt.host}}
				out, err := cmd.CombinedOutput()
				got, pids, _ := strings.Cut(strings.TrimSpace(string(out)), ": ")
				for _, pid := range strings.Fields(pids) {
					killPid(atoi(pid))
				}
				if got == "not asked" && tt.want == "asked" && left > 0 {
					continue // the machine is so busy that the 200 ms were over before it was recognised
				}
				if got != tt.want || err != nil {
					t.Errorf("%q, %v; want %q", out, err, tt.want)
				}
				return
			}
		})
	}
}

// watched stops a program, which handles SIGQUIT, by a limit, and prints whether it was asked for its stacks, and what
// has survived. A third argument is a program that is its child.
func watched(a []string) int {
	cmd, programs := exec.Command(a[0], "QUIT\n", "0", a[1]), 1
	if a[2] != "" {
		programs = 2
		cmd = exec.Command("sh", "-c", `"$1" "also beside\n" 0 & "$0" "$2" 0; wait`, a[0], a[2], "QUIT\n")
	}
	cmd.Env = append(os.Environ(), modeEnv+"=quit")
	r, err := procgroup.Run(context.Background(), cmd, whenSilent(15*time.Second, procgroup.WithKillGrace(time.Second))...)
	out := r.Stdout.String()
	text := "not asked"
	if strings.Contains(out, "QUIT\n") {
		text = "asked"
	}
	if !errors.Is(err, timeout.ErrIdle) || strings.Count(out, "ready\n") != programs || strings.Contains(out, "also beside") {
		text = fmt.Sprint(err, r.Text())
	}
	if len(r.Survivors) > 0 {
		text += ", survives: " + strings.Trim(fmt.Sprint(r.Survivors), "[]")
	}
	fmt.Println(text)
	return 0
}

// SPEC 6.22, 6.9: a program that ends by itself at the moment of the limit has ended, or was stopped; there are stacks only
// if it was stopped, and its output is all there.
func TestStacksOfThoseThatEnd(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	for _, script := range []string{
		`"$0" x 0 & echo out; sleep 0.3; kill -KILL $!; exit 3`,              // the program, right before the shell
		`(exec "$0" x 0) & echo out; sleep 0.295; kill -KILL $! $$; sleep 1`, // both at once
		`echo out; sleep 0.298; exec "$0" x 0`,                               // it becomes one that has no handler yet
	} {
		for range 8 {
			cmd := exec.Command("sh", "-c", script, plain())
			cmd.Env = append(os.Environ(), modeEnv+"=quit")
			r, err := procgroup.Run(context.Background(), cmd, procgroup.WithLimits(timeout.Config{Total: limit}), procgroup.WithKillGrace(time.Second), procgroup.WithStacks())
			if r == nil { // on a busy machine the limit may come before the start
				if !errors.Is(err, timeout.ErrTotal) {
					t.Errorf("%s: %v", script, err)
				}
				continue
			}
			out := r.Stdout.String()
			if !strings.Contains(out, "out\n") && r.Reason == procgroup.TotalTimeout {
				t.Log("the limit has come before the shell's word") // on a busy machine
				continue
			}
			if !strings.Contains(out, "out\n") || (r.Reason != procgroup.Exited) != errors.Is(err, timeout.ErrTotal) || r.Reason == procgroup.Exited && r.Stacks.Total > 0 {
				t.Errorf("%s: %v, %v, %q, stacks: %s", script, r.Reason, err, out, r.Stacks)
			}
			checkSystem(t, r)
		}
	}
}

// SPEC 6.22: nobody else gets a signal but the request to end: not a shell that would tell of each, nor one by the name
// of an interpreter, nor Perl or Node, nor a Go program that ignores it.
func TestStacksOfNobodyElse(t *testing.T) {
	needs(t, "perl")
	t.Parallel()
	sh, err := exec.LookPath("dash")
	if err != nil {
		t.Skip("dash is not installed")
	}
	b, err := os.ReadFile(sh)
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(t.TempDir(), "python3")
	if err := writeProgram(python, b, 0o755); err != nil {
		t.Fatal(err)
	}
	const witness = `for s in HUP INT QUIT USR1 USR2 TERM CONT; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.05; done`
	for name, cmd := range map[string]*exec.Cmd{
		"sh":     exec.Command(sh, "-c", witness),
		"python": exec.Command(python, "-c", witness),
		"perl":   exec.Command("perl", "-e", `$| = 1; for my $s (qw(HUP INT QUIT ABRT USR1 USR2 TERM CONT)) { $SIG{$s} = sub { print "$s\n" } } print "ready\n"; sleep 1 while 1`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd.Env = append(os.Environ(), "PYTHONFAULTHANDLER=1")
			r, err := procgroup.Run(context.Background(), cmd, whenSilent(15*time.Second, procgroup.WithKillGrace(5*time.Second))...)
			checkStacks(t, r, err)
			got := strings.Fields(r.Stdout.String())
			if len(got) < 2 || got[0] != "ready" || r.Stacks.Total != 0 {
				t.Fatalf("%q, %d bytes of stacks", got, r.Stacks.Total)
			}
			for _, s := range got[1:] {
				if s != "TERM" && s != "CONT" {
					t.Errorf("it got %v", got)
				}
			}
		})
	}
}

// SPEC 6.22, 6.6: a program that handles SIGQUIT goes on. Its text without the first line of stacks is output, of which
// every byte is counted; with it, what is kept of the stacks is bounded.
func TestStacksOfEvil(t *testing.T) {
	t.Parallel()
	const header = "SIGQUIT: quit\nPC=0x1 m=0\n"
	for _, tt := range []struct {
		name, text, megabytes string
		stacks                bool
	}{
		{"deaf", "", "0", false},
		{"floods the output", "no stacks\n", "100", false},
		{"floods the stacks", header, "100", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all counter
			var r *procgroup.Result
			var err error
			for left := 4; ; left-- {
				all = 0
				cmd := command("quit", tt.text, tt.megabytes)
				cmd.Stdout = &all
				r, err = procgroup.Run(context.Background(), cmd, whenSilent(12*time.Second, procgroup.WithKillGrace(2*time.Second))...)
				asked := r != nil && r.Stdout.Total+r.Stacks.Total > int64(len("ready\n"))
				if asked || tt.megabytes == "0" || left == 0 { // as with runForStacks
					break
				}
			}
			checkStacks(t, r, err)
			if int64(all) != r.Stdout.Total || r.Unwritten != 0 || len(r.Stdout.Bytes()) > 1<<20 || len(r.Text()) > 1<<20+100 {
				t.Errorf("the writer got %d bytes of %d; %d kept", all, r.Stdout.Total, len(r.Stdout.Bytes()))
			}
			if tt.stacks != (r.Stacks.Total > 0) || len(r.Stacks.Bytes()) > 256<<10 || r.Stacks.Total != r.Stacks.Dropped+int64(len(r.Stacks.Bytes())) {
				t.Errorf("%d bytes of stacks, %d dropped", r.Stacks.Total, r.Stacks.Dropped)
			}
			var stop *timeout.Error
			if errors.As(err, &stop) && len(stop.Stack) > 68<<10 {
				t.Errorf("%d bytes in the error", len(stop.Stack))
			}
			if r.Stdout.Total < 6 || tt.name == "floods the output" && r.Stdout.Total <= 6 {
				t.Errorf("%d bytes of output", r.Stdout.Total)
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// SPEC 6.22: nothing is sent before an abort, before a stop for another reason, without a grace, or without the option;
// and nothing is changed for a command that ends by itself.
func TestNoStacks(t *testing.T) {
	t.Parallel()
	limits := procgroup.WithLimits(timeout.Config{Idle: 1500 * time.Millisecond})
	for _, tt := range []struct {
		name string
		opts []procgroup.Option
		stop time.Duration // of the context
		want procgroup.Reason
	}{
		{"no option", []procgroup.Option{limits}, 0, procgroup.IdleTimeout},
		{"no grace", []procgroup.Option{limits, procgroup.WithStacks(), procgroup.WithKillGrace(-1)}, 0, procgroup.IdleTimeout},
		{"abort", []procgroup.Option{procgroup.WithStacks(), procgroup.WithAbortGrace(time.Second)}, time.Second, procgroup.Aborted},
		{"output", []procgroup.Option{procgroup.WithStacks(), procgroup.WithOutputLimit(3)}, 0, procgroup.TooMuchOutput},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if tt.stop > 0 {
				time.AfterFunc(tt.stop, cancel)
			}
			r, err := procgroup.Run(ctx, command("quit", "QUIT\n", "0"), tt.opts...)
			if r.Reason != tt.want || r.Stacks.Total != 0 || strings.Contains(r.Stdout.String(), "QUIT") {
				t.Errorf("%v, %v, %q, %d bytes of stacks", r.Reason, err, r.Stdout, r.Stacks.Total)
			}
		})
	}
	r, err := procgroup.Run(context.Background(), command("exit", "3"), whenSilent(time.Minute)...)
	if r.ExitCode != 3 || r.Stacks.Total != 0 {
		t.Errorf("%v, %d", err, r.ExitCode)
	}
}

// SPEC 6.22, 6.24: a stopped program is continued for it, and the log has the stacks.
func TestStacksOfStopped(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	said := filepath.Join(t.TempDir(), "said")
	r, err := runForStacks(1500*time.Millisecond, "hangsHere", func() *exec.Cmd {
		_ = os.Remove(said)
		cmd := exec.Command("sh", "-c", `"$0" >"$1" & p=$!; until [ -s "$1" ]; do sleep 0.1; done; kill -STOP $p; wait`, plain(), said)
		cmd.Env = append(os.Environ(), modeEnv+"=hang")
		return cmd
	}, procgroup.WithOptions(timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	checkStacks(t, r, err, "hangsHere")
	if !strings.Contains(log.String(), "hangsHere") {
		t.Errorf("the log:\n%s", log.String())
	}
}

// What it takes to recognise one process, by kind.
func BenchmarkStacksRecognise(b *testing.B) {
	for name, cmd := range map[string]*exec.Cmd{"other": exec.Command("sleep", "120"), "go": command("quit", "", "0")} {
		b.Run(name, func(b *testing.B) {
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
			if name == "go" {
				_, _ = out.Read(make([]byte, 6))
			}
			o, err := procgroup.Observe(context.Background(), cmd.Process, procgroup.Activity{})
			if err != nil {
				b.Fatal(err)
			}
			defer o.Stop()
			b.ResetTimer()
			for b.Loop() {
				o.WriteStacks(nil)
			}
		})
	}
}

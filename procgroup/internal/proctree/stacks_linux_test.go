package proctree

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stacksEnv is in the environment of this binary when it does something instead of testing.
const stacksEnv = "PROCTREE_TEST_STACKS"

// witness says that it got SIGQUIT, and ends then, or soon after its input. If it gets a line of input, it becomes a shell
// that says the same.
func witness() {
	switch os.Getenv(stacksEnv) {
	case "hang":
		os.Stdout.WriteString("ready\n")
		time.Sleep(time.Hour)
	case "ignore":
		signal.Ignore(unix.SIGQUIT)
	default:
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGQUIT)
		go func() {
			<-c
			os.Stdout.WriteString("QUIT\n")
			os.Exit(0)
		}()
	}
	os.Stdout.WriteString("ready\n")
	if n, _ := os.Stdin.Read(make([]byte, 10)); n > 0 {
		_ = unix.Exec("/bin/sh", []string{"sh", "-c", `trap "echo QUIT" QUIT; echo ready; read line; :`}, os.Environ())
	}
	time.Sleep(200 * time.Millisecond) // what was sent before may still be on its way to the goroutine
	os.Exit(0)
}

// A witnessed is a process that tells whether it got SIGQUIT.
type witnessed struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startWitness(t *testing.T) *witnessed {
	t.Helper()
	w := &witnessed{Cmd: exec.Command(os.Args[0], "-test.run=^TestStackWritersThatHaveChanged$")}
	w.Env = append(os.Environ(), stacksEnv+"=witness", "GORACE=atexit_sleep_ms=0")
	stdout, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if w.stdin, err = w.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = w.Process.Kill(), w.Wait() })
	w.lines = bufio.NewScanner(stdout)
	w.ready(t)
	return w
}

func (w *witnessed) ready(t *testing.T) {
	t.Helper()
	if !w.lines.Scan() || w.lines.Text() != "ready" {
		t.Fatalf("%q, %v", w.lines.Text(), w.lines.Err())
	}
}

// gotQuit ends the process, after it got SIGQUIT if that is what is wanted, and reports whether it did, or was ended by it.
func (w *witnessed) gotQuit(want bool) bool {
	if want {
		time.AfterFunc(30*time.Second, func() { w.stdin.Close() })
	} else {
		w.stdin.Close()
	}
	got := w.lines.Scan()
	_ = w.Wait()
	return got || w.ProcessState.ExitCode() != 0
}

// SPEC 6.22: what was recognised gets a signal only if it still is what it was, and never another process with its id.
func TestStackWritersThatHaveChanged(t *testing.T) {
	if os.Getenv(stacksEnv) != "" {
		witness()
	}
	for name, tt := range map[string]struct {
		change func(*testing.T, *witnessed) (witness *witnessed)
		want   bool
	}{
		"unchanged": {func(_ *testing.T, w *witnessed) *witnessed { return w }, true},
		"another program": {func(t *testing.T, w *witnessed) *witnessed {
			io.WriteString(w.stdin, "exec\n")
			w.ready(t)
			return w
		}, false},
		"a zombie": {func(_ *testing.T, w *witnessed) *witnessed {
			w.stdin.Close()
			w.lines.Scan()
			return nil
		}, false},
		"gone": {func(_ *testing.T, w *witnessed) *witnessed {
			w.gotQuit(false)
			return nil
		}, false},
		"another process": {func(t *testing.T, w *witnessed) *witnessed {
			if os.Getuid() != 0 {
				t.Skip("needs root, to choose the next process id")
			}
			w.gotQuit(false)
			time.Sleep(20 * time.Millisecond) // a start is known to 10 ms, see procfs.Key
			for range 20 {
				_ = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(w.Process.Pid-1)), 0)
				if next := startWitness(t); next.Process.Pid == w.Process.Pid {
					return next
				}
			}
			t.Skip("the id was never given out again: other processes were faster")
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWitness(t)
			f, err := Watch(w.Process)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ask := f.StackWriters(time.Now().Add(10*time.Second), nil)
			if ask == nil {
				t.Fatal("it was not recognised")
			}
			w = tt.change(t, w)
			ask(time.Now().Add(10 * time.Second))
			if w != nil && w.gotQuit(tt.want) != tt.want {
				t.Errorf("asked: %v", !tt.want)
			}
		})
	}
}

// witnessing returns a command that runs a copy of this binary as a witness, or what else mode says.
func witnessing(path, mode string) *exec.Cmd {
	cmd := exec.Command(path, "-test.run=^TestStackWritersThatHaveChanged$")
	cmd.Env = append(os.Environ(), stacksEnv+"="+mode, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// SPEC 6.22: who writes its stacks is recognised, in each containment, whether it is the command itself or a grandchild, and
// writes them when it is asked; nobody else is: not a shell that would tell of each signal, nor one by the name of an
// interpreter, nor Perl, nor a program that has its own handlers.
func TestStackWriters(t *testing.T) {
	dir := t.TempDir()
	java, python := filepath.Join(dir, "Hang.java"), filepath.Join(dir, "python3")
	dash, err := exec.LookPath("dash")
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(os.Symlink(dash, python), os.WriteFile(java, []byte(`public class Hang {
		static void hangsHere() throws Exception { System.out.println("ready"); Thread.sleep(3600000); }
		public static void main(String[] args) throws Exception { hangsHere(); }
	}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	const hang = "import sys, time\ndef hangs_here(): print('ready', flush=True); time.sleep(3600)\nhangs_here()"
	const own = "import signal, sys, time\nfor s in sys.argv[1:]: signal.signal(getattr(signal, s), lambda *a: None)\nprint('ready', flush=True)\ntime.sleep(3600)"
	const traps = `for s in HUP INT QUIT USR1 USR2 TERM CONT; do trap "echo $s" $s; done; echo ready; while :; do sleep 0.05; done`
	const perl = `$| = 1; $SIG{$_} = sub { } for qw(HUP INT QUIT ABRT USR1 USR2 TERM); print "ready\n"; sleep 1 while 1`
	env := func(variable string, name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), variable, stacksEnv+"=hang")
		return cmd
	}
	const faults = "PYTHONFAULTHANDLER=1"
	for _, tt := range []struct {
		name, program string
		cmd           func() *exec.Cmd
		want          string // in what it writes; "" if it is not to be asked
	}{
		{"Go", "sh", func() *exec.Cmd { return witnessing(os.Args[0], "hang") }, "SIGQUIT: quit"},
		{"Go that handles it", "sh", func() *exec.Cmd { return witnessing(os.Args[0], "witness") }, "QUIT"},
		{"Go that ignores it", "sh", func() *exec.Cmd { return witnessing(os.Args[0], "ignore") }, ""},
		{"a grandchild in Go", "setsid", func() *exec.Cmd {
			return env("A=b", "sh", "-c", `(setsid -w "$0" "$1"; :); :`, os.Args[0], "-test.run=^TestStackWritersThatHaveChanged$")
		}, "SIGQUIT: quit"},
		{"Go that is stopped", "sh", func() *exec.Cmd {
			return env("A=b", "sh", "-c", `"$0" "$1" >"$2" 2>&1 & until grep -q ready "$2"; do sleep 0.02; done; kill -STOP $!; until grep -q "T (stopped)" /proc/$!/status; do sleep 0.02; done; echo ready; wait; cat "$2"`, os.Args[0], "-test.run=^TestStackWritersThatHaveChanged$", filepath.Join(t.TempDir(), "out"))
		}, "SIGQUIT: quit"},
		{"Java", "java", func() *exec.Cmd { return exec.Command("java", java) }, "Hang.hangsHere"},
		{"Java -Xrs", "java", func() *exec.Cmd { return exec.Command("java", "-Xrs", java) }, ""},
		{"Python", "python3", func() *exec.Cmd { return env(faults, "python3", "-c", hang) }, "hangs_here"},
		{"Python without the handler", "python3", func() *exec.Cmd { return env("PYTHONFAULTHANDLER=", "python3", "-c", hang) }, ""},
		{"Python that ignores the environment", "python3", func() *exec.Cmd { return env(faults, "python3", "-I", "-c", hang) }, ""},
		{"Python with a handler of its own", "python3", func() *exec.Cmd { return env(faults, "python3", "-I", "-c", own, "SIGABRT") }, ""},
		{"Python with all handlers of its own", "python3", func() *exec.Cmd {
			return env("PYTHONFAULTHANDLER=", "python3", "-c", own, "SIGABRT", "SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL")
		}, ""},
		{"a shell", "dash", func() *exec.Cmd { return env(faults, dash, "-c", traps) }, ""},
		{"a shell by another name", "dash", func() *exec.Cmd { return env(faults, python, "-c", traps) }, ""},
		{"Perl", "perl", func() *exec.Cmd { return env(faults, "perl", "-e", perl) }, ""},
	} {
		for _, kind := range []Kind{Descendants, Group, Cgroup} {
			if kind != Descendants && (tt.name != "Go" && tt.name != "a grandchild in Go" || kind == Group && tt.program == "setsid") { // which has left the group
				continue
			}
			t.Run(tt.name+"/"+kind.String(), func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(tt.program); err != nil {
					t.Skip(err)
				}
				cmd := tt.cmd()
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				cmd.Stdout, cmd.Stderr = w, w
				tree, err := Start(context.Background(), cmd, kind)
				w.Close()
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
				defer hung.Stop()
				defer func() {
					tree.Kill(time.Now().Add(time.Minute))
					tree.Close()
				}()
				lines := bufio.NewScanner(r)
				for lines.Scan() && lines.Text() != "ready" {
				}
				ask := tree.StackWriters(time.Now().Add(time.Minute), nil)
				if (ask != nil) != (tt.want != "") {
					t.Fatalf("to be asked: %v, want %v", ask != nil, tt.want != "")
				}
				if ask == nil {
					return
				}
				ask(time.Now().Add(time.Minute))
				for lines.Scan() {
					if strings.Contains(lines.Text(), tt.want) {
						return
					}
				}
				t.Errorf("it has ended without %q", tt.want)
			})
		}
	}
}

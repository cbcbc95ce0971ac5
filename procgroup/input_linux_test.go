package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The expected finding for a command.
type found int

const (
	no found = iota
	probably
	certainly
	missed // it waits, and that is not seen: a known limit, which is a failure once it is seen
)

// programs is the table of SPEC 6.18 on a pipe: programs as they are run by agents, and what is right. The
// documentation has it too.
var programs = []struct {
	script string
	want   found
	prompt string
}{
	// Those that wait.
	{`cat`, certainly, ""},
	{`cat -`, certainly, ""},
	{`cat | cat`, certainly, ""},
	{`sed p`, certainly, ""},
	{`sort`, certainly, ""},
	{`wc -l`, certainly, ""},
	{`tr a b`, certainly, ""},
	{`tee out`, certainly, ""},
	{`head -3`, certainly, ""},
	{`grep -q foo`, certainly, ""},
	{`md5sum`, certainly, ""},
	{`base64`, certainly, ""},
	{`xargs echo`, certainly, ""},
	{`read x`, certainly, ""},
	{`printf 'Name: '; read x`, certainly, "Name:"},
	{`printf 'Continue? [y/N] '; read x; echo "$x"`, certainly, "Continue? [y/N]"},
	{`printf '\033[1mProceed?\033[0m '; read x`, certainly, "Proceed?"},
	{`printf 'Loading\rPassword: '; read x`, certainly, "Password:"},
	{`echo working; sleep 1; printf 'Sure? '; read x`, certainly, "Sure?"},
	{`sleep 1; read x`, certainly, ""},
	{`(read x)`, certainly, ""},
	{`sh -c 'sh -c "read x"; :'; :`, certainly, ""},
	{`while read x; do echo "$x"; done`, certainly, ""},
	{`printf 'a? '; timeout 60 cat`, certainly, "a?"},
	{`printf 'wait: '; sleep 60 & read x`, probably, "wait:"},
	{`sleep 60 & read x`, missed, ""},
	{`printf '1) a\n2) b\n#? '; bash -c 'read -t 600 x'`, probably, "#?"},
	{`bash -c 'select x in a b; do :; done'`, certainly, "#?"},
	{`bash -c 'read -t 600 x'`, missed, ""},
	{`cp /etc/passwd a; cp -i /etc/passwd a`, certainly, "cp: overwrite 'a'?"},
	{`touch a; rm -i a`, certainly, "rm: remove regular empty file 'a'?"},
	{`touch a b; mv -i a b`, certainly, "mv: overwrite 'b'?"},
	{`echo a | tee b c >/dev/null; ln -i b c`, certainly, "ln: replace 'c'?"},
	{`git init -q . && echo a > a && git add a && git -c user.name=a -c user.email=b commit -qm x && echo b >> a && git add -p`, certainly, "(1/1) Stage this hunk [y,n,q,a,d,e,?]?"},
	{`git init -q . && touch a && git clean -i`, certainly, "What now>"},
	{`git hash-object --stdin`, certainly, ""},
	{`python3 -c 'input("Name: ")'`, certainly, "Name:"},
	{`python3 -c 'import sys; sys.stdin.readline()'`, certainly, ""},
	{`python3 -c 'import sys, select; select.select([sys.stdin], [], [])'`, certainly, ""},
	{`python3 -c 'import sys, select; sys.stdout.write("y? "); sys.stdout.flush(); select.select([sys.stdin], [], [], 600)'`, probably, "y?"},
	{`python3 -c 'import selectors, sys; s = selectors.DefaultSelector(); s.register(0, 1); s.select()'`, certainly, ""},
	{`python3 -c 'import threading, sys; threading.Thread(target=sys.stdin.read).start()'`, certainly, ""},
	{`python3 -i -q`, certainly, ">>>"},
	{`echo 'x = 1' >a.py; python3 -m pdb a.py`, certainly, "(Pdb)"},
	{`python3 -c 'import subprocess; subprocess.run(["cat"])'`, certainly, ""},
	{`perl -e '$| = 1; print "x? "; <STDIN>'`, certainly, "x?"},
	{`perl -e '<STDIN>'`, certainly, ""},
	{`node -e 'process.stdin.on("data", () => {})'`, certainly, ""},
	{`node -e 'require("readline").createInterface({input: process.stdin, output: process.stdout}).question("Name? ", () => {})'`, certainly, "Name?"},
	{`node -e 'require("fs").readFileSync(0)'`, certainly, ""},
	{`node -i`, probably, ">"},
	{`awk '{print}'`, certainly, ""},
	{`bc -q`, certainly, ""},
	{`sqlite3 x.db`, certainly, ""},
	{`gdb -q`, certainly, "(gdb)"},
	{`tclsh`, certainly, ""},
	{`gpg --batch --decrypt`, certainly, ""},

	{`perl -e 'alarm 60; <STDIN>'`, certainly, ""}, // an alarm is a signal

	// Those that do not.
	{`python3 -c 'import threading, time, sys; threading.Thread(target=time.sleep, args=(60,)).start(); sys.stdin.readline()'`, no, ""},
	{`python3 -c 'import threading, sys; threading.Timer(60, print).start(); sys.stdin.readline()'`, no, ""},
	{`python3 -c 'import select, socket; a, b = socket.socketpair(); s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); c = socket.create_connection(s.getsockname()); e = select.epoll(); e.register(0, select.EPOLLIN); e.register(c, select.EPOLLRDHUP); e.poll()'`, no, ""},
	{`python3 -c 'import select; f = open("/proc/self/mountinfo"); e = select.epoll(); e.register(0, select.EPOLLIN); e.register(f, select.EPOLLPRI); e.poll()'`, no, ""},
	{`python3 -c 'import select, os; f = open("/proc/self/mountinfo"); p = select.poll(); p.register(0, 1); p.register(f, 2); p.poll()'`, no, ""},
	{`python3 -c 'import select, socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); select.select([0], [], [s])'`, no, ""},
	{`sleep 60`, no, ""},
	{`sleep 60 & wait`, no, ""},
	{`printf 'Working...'; sleep 60`, no, ""},
	{`printf 'Working... '; sleep 60 & wait`, no, ""},
	{`sleep 60 </dev/null | cat`, no, ""},
	{`tail -f /dev/null`, no, ""},
	{`touch a; tail -f a`, no, ""},
	{`printf 'a? '; tail -f /dev/null | cat`, no, ""},
	{`while :; do sleep 0.2; done`, no, ""},
	{`while :; do :; done`, no, ""},
	{`while :; do echo x; sleep 0.1; done`, no, ""},
	{`mkfifo f; cat f`, no, ""},
	{`mkfifo f; printf 'a? '; cat <f`, no, ""},
	{`kill -STOP $$`, no, ""},
	{`python3 -c 'import time; time.sleep(60)'`, no, ""},
	{`python3 -c 'import threading; threading.Event().wait()'`, no, ""},
	{`python3 -c 'import threading; threading.Event().wait(60)'`, no, ""},
	{`python3 -c 'import asyncio; asyncio.run(asyncio.sleep(60))'`, no, ""},
	{`python3 -m http.server 0`, no, ""},
	{`python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); s.accept()'`, no, ""},
	{`python3 -c 'import socket, select, sys; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); select.select([s, sys.stdin], [], [])'`, no, ""},
	{`python3 -c 'import socket, threading, sys; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); threading.Thread(target=s.accept).start(); sys.stdin.read()'`, no, ""},
	{`python3 -c 'import multiprocessing as m; p = m.Process(target=__import__("time").sleep, args=(60,)); p.start(); p.join()'`, no, ""},
	{`python3 -c 'import fcntl, os; f = open("l", "w"); fcntl.flock(f, 2); os.fork() or fcntl.flock(open("l"), 2); __import__("time").sleep(60)'`, no, ""},
	{`node -e 'setTimeout(() => {}, 60000)'`, no, ""},
	{`node -e 'setInterval(() => {}, 100)'`, no, ""},
	{`node -e 'require("net").createServer().listen(0, "127.0.0.1"); process.stdin.on("data", () => {})'`, no, ""},
	{`node -e 'require("fs").watch("."); process.stdin.resume()'`, no, ""},
	{`node -e 'require("child_process").spawn("sleep", ["60"])'`, no, ""},
	{`perl -e 'sleep 60'`, no, ""},
	{`perl -e 'use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); $s->accept'`, no, ""},
	{`vim -es -u NONE -c 'sleep 60'`, no, ""},
	{`sqlite3 x.db 'with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c limit 1'`, no, ""},
}

// busyPrograms take a whole processor, from the start on.
var busyPrograms = []string{`while :; do :; done`, `sqlite3 x.db 'with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c limit 1'`}

// severalLooks is how long a program is looked at that is not to be found. One that is busy from the start on is looked at
// for three looks, which are one more than it takes to find one that waits.
func severalLooks(script string) time.Duration {
	if slices.Contains(busyPrograms, script) {
		return 1300 * time.Millisecond
	}
	return 2500 * time.Millisecond
}

// A sideBySide runs subtests beside each other that start a program each and only wait then: many more of them than there
// may be parallel tests, of which others need a processor.
type sideBySide struct{ all sync.WaitGroup }

// programsAtOnce bounds the programs of a test that are side by side. Such a test is not parallel: that many starts hold
// other tests up for longer than those can bear.
var programsAtOnce = make(chan struct{}, 40)

// run runs f as a subtest of t, which must not end before wait has returned.
func (s *sideBySide) run(t *testing.T, name string, f func(t *testing.T)) {
	programsAtOnce <- struct{}{}
	s.all.Go(func() {
		defer func() { <-programsAtOnce }()
		t.Run(name, f)
	})
}

func (s *sideBySide) wait() { s.all.Wait() }

// startWaiting starts a script with an input that does not come.
func startWaiting(t *testing.T, script string, opts ...procgroup.Option) *procgroup.Process {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	p, err := procgroup.Start(ctx, cmd, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_, _ = p.Wait()
	})
	return p
}

// SPEC 6.18: programs that wait for input are found to do so, with what they ask, and no other one is.
func TestInputOfPrograms(t *testing.T) {
	var all errgroup.Group
	all.SetLimit(cap(programsAtOnce))
	for _, tt := range programs {
		all.Go(runAs(t, tt.script, func(t *testing.T) {
			program := strings.Fields(tt.script)[0]
			if program == "bash" || program == "python3" || len(program) > 2 && program != "printf" && program != "while" && program != "read" {
				if _, err := exec.LookPath(program); err != nil && !strings.HasPrefix(program, "(") {
					t.Skip(program, "is not installed")
				}
			}
			p := startWaiting(t, tt.script)
			want := procgroup.InputWait{Certain: tt.want == certainly, Prompt: tt.prompt}
			least := severalLooks(tt.script)
			if tt.want == probably || tt.want == certainly {
				least = 4 * slack // compilers and chains of programs take their time
			}
			var got procgroup.InputWait
			defer func() {
				if t.Failed() {
					t.Logf("%+v", got)
				}
			}()
			for begun := time.Now(); time.Since(begun) < least; time.Sleep(20 * time.Millisecond) {
				got = p.Input()
				if got.Pid == 0 {
					continue
				}
				got.Pid = 0
				switch {
				case tt.want == no:
					t.Fatalf("a false alarm: %+v", got)
				case tt.want == missed:
					t.Fatalf("%+v: it is found, so the table of known misses is wrong", got)
				case got == want:
					return
				}
			}
			if tt.want != no && tt.want != missed {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}))
	}
	_ = all.Wait()
}

// runAs returns a function that runs a subtest, for a group of those that run beside each other as one
// of the parallel tests, because they only wait. It returns nil.
func runAs(t *testing.T, name string, f func(t *testing.T)) func() error {
	return func() error {
		t.Run(name, f)
		return nil
	}
}

// SPEC 6.18: a command that certainly waits for input is stopped on request, and the error says what it asks.
func TestStopOnInput(t *testing.T) {
	t.Parallel()
	p := startWaiting(t, `printf 'Continue? [y/N] '; read x`, procgroup.StopOnInput(), procgroup.WithOptions(timeout.WithName("make")))
	r, err := p.Wait()
	if !errors.Is(err, procgroup.ErrInput) || timeout.ExitCode(err) != 124 || err.Error() != "make waits for input: Continue? [y/N]" {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, procgroup.ErrTerminal) || errors.Is(err, timeout.ErrAborted) {
		t.Errorf("%v is another error, too", err)
	}
	if r.Reason != procgroup.WaitingForInput || r.Message != err.Error() || r.ExitCode != 124 || r.Input != p.Input() || r.Input.Pid == 0 || r.State == nil {
		t.Errorf("result %+v", r)
	}
	marked := 0
	for _, info := range r.Tree.Processes {
		if info.Wait == "input" {
			marked++
		}
	}
	if marked != 1 || r.Combined.String() != "Continue? [y/N] " {
		t.Errorf("the processes\n%v\nand the output %q", r.Tree, r.Combined)
	}
}

// SPEC 6.18: without the request an idle limit stops it, and the message says why it was silent.
func TestIdleSaysInput(t *testing.T) {
	t.Parallel()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		cmd := exec.Command("sh", "-c", "printf 'Password: '; read x")
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = procgroup.Run(ctx, cmd)
		return err
	}, timeout.Config{Idle: 20 * time.Second}, timeout.WithName("tool"))
	want := "No progress for 20s (idle timeout). Its command waits for input: Password:"
	if err == nil || err.Error() != want || !errors.Is(err, timeout.ErrIdle) {
		t.Errorf("got %v\nwant %v", err, want)
	}
}

// A wait is reported when it begins, and when the command has gone on.
func TestInputWaitIsTold(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `printf 'A? '; read a; printf 'B? '; read b; echo "$a$b"`)
	in, out := io.Pipe()
	cmd.Stdin = in
	var told []string
	r, err := procgroup.Run(context.Background(), cmd, procgroup.WithInputWait(func(w procgroup.InputWait) {
		if w.Pid != 0 { // that it has gone on is told if there is time between
			told = append(told, w.String())
			n := len(told)
			go fmt.Fprintln(out, n)
		}
	}))
	if err != nil || !strings.HasSuffix(r.Stdout.String(), "12\n") {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	out.Close()
	if diff := cmp.Diff([]string{"waits for input: A?", "waits for input: B?"}, told); diff != "" {
		t.Error(diff)
	}
	if r.Input != (procgroup.InputWait{}) {
		t.Errorf("it ended by itself and %v", r.Input)
	}
}

// Each function that was given is called, in the order of the options.
func TestInputWaitTwice(t *testing.T) {
	t.Parallel()
	var called []string
	p := startWaiting(t, "read x",
		procgroup.WithInputWait(func(procgroup.InputWait) { called = append(called, "first") }),
		procgroup.WithInputWait(nil),
		procgroup.WithInputWait(func(procgroup.InputWait) { called = append(called, "second") }),
		procgroup.StopOnInput())
	_, err := p.Wait()
	if diff := cmp.Diff([]string{"first", "second"}, called); diff != "" || !errors.Is(err, procgroup.ErrInput) {
		t.Error(err, diff)
	}
}

// A callback that panics ends the command, and not the program.
func TestInputWaitPanics(t *testing.T) {
	t.Parallel()
	p := startWaiting(t, "read x", procgroup.WithInputWait(func(procgroup.InputWait) { panic("callback") }))
	_, err := p.Wait()
	if panicked := (*timeout.PanicError)(nil); !errors.As(err, &panicked) || panicked.Value != "callback" || timeout.ExitCode(err) != 130 {
		t.Error(err)
	}
}

// A process that may not be read makes the answer unknown, also where another one waits for input.
func TestInputOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start a process of another user")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("setpriv is not installed")
	}
	// As an ordinary user, this process is the host of a command with a part that is root's.
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "f")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	p := startWaiting(t, "setpriv --reuid 65534 --clear-groups sh -c 'read x'")
	for begun := time.Now(); p.Input().Pid == 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > slack {
			t.Fatal("root may read all, and it is not found")
		}
	}
}

// SPEC 6.15, 6.16: a program that asks the terminal for something fails at once, in a session of its own. In a process
// group of the host's session it is stopped by the terminal, which is found and said.
func TestTerminalOfTheHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mode, script, want string
	}{
		{"read, by default", "", "read x </dev/tty", "exited"},
		{"stty, by default", "", "stty -a </dev/tty", "exited"},
		{"read, in a group", "group", "read x </dev/tty", "stopped by the terminal"},
		{"a child reads, in a group", "group", "sh -c 'read x </dev/tty'; :", "stopped by the terminal"},
		{"stty, in a group", "group", "stty sane </dev/tty", "stopped by the terminal"},
		{"stdin is the terminal", "stdin", "read x", "stopped by the terminal"},
		{"a group that asks nothing", "group", "sleep 1", "exited"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			master, slave := terminal(t)
			go func() { _, _ = io.Copy(io.Discard, master) }() // until the test closes it
			var out strings.Builder
			host := command("terminalhost", tt.mode, tt.script)
			host.Stdin, host.Stdout, host.Stderr = slave, &out, &out
			host.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := host.Run(); err != nil || !strings.HasPrefix(out.String(), tt.want+"\n") {
				t.Errorf("%v: %s, want %s", err, &out, tt.want)
			}
		})
	}
}

func init() {
	hosts["terminalhost"] = func(a []string) int {
		cmd := exec.Command("sh", "-c", a[1])
		switch a[0] {
		case "group":
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		case "stdin":
			cmd.Stdin = os.Stdin
		}
		r, err := procgroup.Run(context.Background(), cmd, procgroup.WithLimits(timeout.Config{Total: 4 * slack}))
		fmt.Println(r.Reason)
		fmt.Println(r.Message, err, errors.Is(err, procgroup.ErrTerminal) == (r.Reason == procgroup.StoppedByTerminal), timeout.ExitCode(err))
		fmt.Print(r.Tree, r.Combined)
		return 0
	}
}

// terminal makes a pair of pseudo-terminals.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// SPEC 6.17: usual programs ask nobody, and a variable that is set keeps its value.
func TestUnattended(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `echo "$GIT_EDITOR $PAGER $TERM"`)
	cmd.Env = append(os.Environ(), "PAGER=more", "TERM=")
	if r, err := procgroup.Run(context.Background(), cmd, procgroup.Unattended()); err != nil || r.Stdout.String() != "true more \n" {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	if len(cmd.Env) != len(os.Environ())+2 {
		t.Error("the caller's command was changed")
	}
	const repository = "git init -q . && git config user.name a && git config user.email b && echo a >a && git add a && "
	for _, tt := range []struct {
		script, output string
		code           int
	}{
		{repository + "git commit", "empty commit message", 1},
		{repository + "git commit -qm x && git commit --amend", "Date:", 0},
		{repository + "git commit -qm x && git commit -q --allow-empty -m y && git rebase -i HEAD~1", "uccessfully", 0},
		{repository + "git commit -qm x && git log", "Author: a <b>", 0},
		{"git ls-remote https://127.0.0.1:1/x", "", 128},
	} {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", tt.script)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1")
			r, err := procgroup.Run(context.Background(), cmd, procgroup.Unattended(), procgroup.WithLimits(timeout.Config{Total: 4 * slack}))
			if timeout.ExitCode(err) != tt.code || !strings.Contains(r.Combined.String(), tt.output) {
				t.Errorf("%v: %s", err, r.Combined)
			}
		})
	}
}

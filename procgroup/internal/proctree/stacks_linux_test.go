package proctree

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stacksEnv has what this binary does instead of testing.
const stacksEnv = "PROCTREE_TEST_STACKS"

// witness says that it got SIGQUIT, and ends then, or soon after its input. If it gets a line of input, it becomes a shell
// that says the same.
func witness() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGQUIT)
	go func() {
		<-c
		os.Stdout.WriteString("QUIT\n")
		os.Exit(0)
	}()
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

// SPEC 6.22: nothing is sent while the programs are looked for, and none that has ended is one.
func TestStackWritersOfTheDead(t *testing.T) {
	w := startWitness(t)
	f, err := Watch(w.Process)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.StackWriters(time.Now().Add(10*time.Second), func(int) bool { return false }) != nil {
		t.Error("found what was not to be asked")
	}
	if w.gotQuit(false) {
		t.Error("it was asked")
	}
	if f.StackWriters(time.Now().Add(10*time.Second), nil) != nil {
		t.Error("found what has been waited for")
	}
}

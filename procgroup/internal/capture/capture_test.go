//go:build unix

package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
)

// A command that was never started stands for one: the test writes its output, to a
// descriptor of its own.
type command struct {
	t      *testing.T
	cmd    exec.Cmd
	c      *Capture
	stdout *os.File
}

func newCommand(t *testing.T, stdout io.Writer, config Config) *command {
	t.Helper()
	config.Begun, config.Beat, config.Max = time.Now(), func() {}, kept.Unlimited
	k := &command{t: t}
	k.cmd.Stdout = stdout
	var err error
	if k.c, err = Connect(&k.cmd, config); err != nil {
		t.Fatal(err)
	}
	k.stdout = another(t, k.cmd.Stdout.(*os.File))
	return k
}

// another is one more descriptor of a pipe.
func another(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	g := os.NewFile(uintptr(fd), f.Name())
	t.Cleanup(func() { g.Close() })
	return g
}

// startWithoutCollectors is Start on a machine so busy that the collectors do not run.
func (k *command) startWithoutCollectors() {
	k.c.startConsumers()
	k.c.closeWriters()
	k.c.start.end()
}

func (k *command) write(s string) {
	k.t.Helper()
	if _, err := k.stdout.WriteString(s); err != nil {
		k.t.Fatal(err)
	}
}

func (k *command) finish() (End, string) {
	k.t.Helper()
	end := k.c.Finish(context.Background(), time.Now().Add(time.Minute), time.Now().Add(time.Minute))
	stdout, _, _ := k.c.Kept(false)
	return end, stdout.String()
}

var (
	now = func() time.Time { return time.Now() }
	// soon is long enough for a goroutine to run, on most machines.
	soon = 20 * time.Millisecond
)

// A loosePipe is closed without waiting for the read in progress, as on systems other than Unix.
type loosePipe struct{ *os.File }

func (p loosePipe) Close() error {
	go p.File.Close()
	return nil
}

func newLoosePipe() (ReadEnd, io.WriteCloser, func(fd uintptr, b []byte) (int, error)) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	return loosePipe{r}, w, readFD
}

// SPEC 6.26: the end of a stream whose writer has failed is reported after the output that was read meanwhile.
func TestHangUpWhileOutputIsPassedOn(t *testing.T) {
	var ends atomic.Int64 // of stdout
	var got atomic.Int64
	var k *command
	hung := make(chan struct{})
	k = newCommand(t, nil, Config{Limit: 1, Pipe: newLoosePipe, Output: func(c Chunk) {
		if got.Add(int64(len(c.Data))); c.Last && !c.Stderr {
			if ends.Add(1); got.Load() != 2 {
				t.Errorf("the end after %d bytes", got.Load())
			}
		}
	}, Exceeded: func() { // the output is counted, and not passed on yet
		go func() {
			defer close(hung)
			k.c.hangUp(&k.c.streams[0])
		}()
		for range 1000 {
			runtime.Gosched()
		}
	}})
	k.startWithoutCollectors()
	k.write("ab")
	k.c.Drain(now(), now())
	<-hung
	k.finish()
	if ends.Load() != 1 || got.Load() != 2 {
		t.Errorf("%d bytes and %d ends", got.Load(), ends.Load())
	}
}

// A child that was forked for another command, and has not executed it yet, is nobody who
// holds a stream.
func TestStartsInProgress(t *testing.T) {
	k := newCommand(t, nil, Config{})
	other := newCommand(t, nil, Config{}) // which has been forked, and so has k's ends too
	k.startWithoutCollectors()
	later := newCommand(t, nil, Config{}) // to be forked; it cannot have them
	defer later.c.Discard()
	k.write("abc")
	time.AfterFunc(5*soon, func() {
		k.stdout.Close()
		other.c.Discard()
	})
	if k.c.Drain(now(), now().Add(time.Hour)) {
		t.Error("held")
	}
	if end, kept := k.finish(); end.Held || kept != "abc" {
		t.Errorf("%+v, %q", end, kept)
	}
}

// SPEC 6.14: a stream that cannot be read is an error, and no reason to claim that another process holds it, or to wait.
func TestReadError(t *testing.T) {
	for _, tt := range []struct {
		name             string
		collectors, held bool // held: another process has the other stream
	}{
		{"found by the collector", true, false},
		{"found by Drain", false, false},
		{"found by the collector, and the other stream is held", true, true},
		{"found by Drain, and the other stream is held", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newCommand(t, nil, Config{})
			stderr := another(t, k.cmd.Stderr.(*os.File))
			k.c.streams[0].pipe = unreadable(t)
			if tt.collectors {
				k.c.Start()
			} else {
				k.startWithoutCollectors()
			}
			if !tt.held {
				stderr.Close()
			}
			for range 2 {
				if k.c.Drain(now(), now()) != tt.held {
					t.Errorf("held is %v", !tt.held)
				}
			}
			if end, _ := k.finish(); !errors.Is(end.Err, syscall.EISDIR) || end.Held != tt.held {
				t.Errorf("%+v", end)
			}
		})
	}
}

// SPEC 6.14: the end of the last stream ends the wait of Drain, if the other one cannot be read.
func TestEndAfterReadError(t *testing.T) {
	for failed := range 2 {
		k := newCommand(t, nil, Config{})
		k.c.streams[failed].pipe = unreadable(t)
		other := k.stdout
		if failed == 0 {
			other = another(t, k.cmd.Stderr.(*os.File))
		}
		k.c.Start()
		time.AfterFunc(soon, func() { other.Close() })
		until := now().Add(10 * time.Second)
		if k.c.Drain(until, until) || !now().Before(until) {
			t.Errorf("stream %d: held, or waited until the end", failed)
		}
		k.finish()
	}
}

// unreadable returns a pipe of which every read fails.
func unreadable(t *testing.T) *pipe {
	t.Helper()
	directory, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	p := &pipe{r: directory, end: directory, read: readFD, holds: pipeSize}
	p.ready = p.try
	if p.conn, err = directory.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	return p
}

// SPEC 6.22: every byte counts once, as output or as stacks, if a stream ends while the stacks are separated.
func TestEndsWhileStacksAreSeparated(t *testing.T) {
	const dump = "Full thread dump OpenJDK\n\n\"main\"\n"
	for _, tt := range []struct{ name, text, output, stacks string }{
		{"in output", "tick", "tick", ""},
		{"in a dump of a JVM", "tick\n" + dump, "tick\n", dump},
		{"at the heap of a JVM", dump + "\nHeap\n x", "", dump + "\nHeap\n x"},
		{"after a dump of a JVM", dump + "\nHeap\n\ntock", "tock", dump + "\nHeap\n\n"},
		{"in a dump of Go", "SIGQUIT: quit\nPC=0x1", "", "SIGQUIT: quit\nPC=0x1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newCommand(t, nil, Config{})
			beats := 0
			k.c.config.Beat = func() { beats++ }
			k.startWithoutCollectors()
			k.c.BeginStacks()
			k.write(tt.text)
			k.stdout.Close()
			k.c.EndStacks(now())
			wantBeats := min(len(tt.output), 1)
			if line := strings.TrimSpace(tt.output); k.c.Line() != line || beats != wantBeats {
				t.Errorf("line %q, want %q; %d beats, want %d", k.c.Line(), line, beats, wantBeats)
			}
			_, output := k.finish()
			if got := k.c.Stacks(); output != tt.output || got.String() != tt.stacks || got.Total != int64(len(tt.stacks)) {
				t.Errorf("output %q, stacks %q of %d bytes", output, got, got.Total)
			}
		})
	}
}

// SPEC 6.22: bytes that may be the beginning of a dump are output, and kept, if the stream is closed before it shows.
func TestHangUpWhileStacksAreSeparated(t *testing.T) {
	var got strings.Builder
	k := newCommand(t, nil, Config{Output: func(c Chunk) { got.Write(c.Data) }})
	k.startWithoutCollectors()
	k.c.BeginStacks()
	k.write("tick")
	k.c.rest()
	k.c.hangUp(&k.c.streams[0])
	k.c.EndStacks(now())
	if _, kept := k.finish(); kept != "tick" || got.String() != "tick" || k.c.Line() != "tick" {
		t.Errorf("kept %q, line %q, passed on %q", kept, k.c.Line(), got.String())
	}
}

// SPEC 6.30: the newest line is that of the screen on which the last output stands, whose rows are not known where what
// came before is not kept.
func TestNewestLine(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"the line of the cursor", "one\ntwo\n\x1b[H", "one"},
		{"the next one above", "one\n \n", "one"},
		{"a row of which nothing is kept", strings.Repeat("x", 2*maxTail) + "\none\n\x1b[H", ""},
		{"the same, further down", strings.Repeat("x", 2*maxTail) + "\none\n", "one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newCommand(t, nil, Config{})
			defer k.c.Discard()
			k.c.noteOutput(&k.c.streams[0], []byte(tt.output))
			if got := k.c.Line(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

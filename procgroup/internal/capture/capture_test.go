//go:build unix

package capture

import (
	"bytes"
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
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
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
	config.Begun, config.Beat, config.Max = time.Now(), func() {}, Unlimited
	k := &command{t: t}
	k.cmd.Stdout = stdout
	var err error
	if k.c, err = New(&k.cmd, config); err != nil {
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
	k.c.endStart()
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

// SPEC 6.14: written output is there, and an end is one, even if nobody has read before.
func TestDrainNeedsNoCollector(t *testing.T) {
	var out bytes.Buffer
	k := newCommand(t, &out, Config{})
	k.startWithoutCollectors()
	k.write("all of it")
	k.stdout.Close()
	if k.c.Drain(now(), now()) {
		t.Error("held")
	}
	end, kept := k.finish()
	if end.Held || end.Err != nil || end.Unwritten != 0 || kept != "all of it" || out.String() != kept {
		t.Errorf("%+v, kept %q, written %q", end, kept, &out)
	}
}

// SPEC 6.14: a writer gets the rest of the output, if it takes it at once, even where nobody waits for it.
func TestFinishWritesWhatIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes while the writer's goroutine has not had its turn
		for range 100 {
			var out bytes.Buffer
			k := newCommand(t, &out, Config{})
			k.startWithoutCollectors()
			k.write("all of it")
			k.stdout.Close()
			k.c.Drain(now(), now())
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if end := k.c.Finish(ctx, now().Add(time.Minute), now().Add(time.Minute)); end.Unwritten > 0 {
				t.Fatalf("%+v", end)
			}
			if out.String() != "all of it" {
				t.Fatalf("written %q", &out)
			}
		}
	})
}

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
	var ends [2]atomic.Int64
	var got atomic.Int64
	var k *command
	hung := make(chan struct{})
	k = newCommand(t, nil, Config{Limit: 1, Pipe: newLoosePipe, Output: func(c Chunk) {
		if got.Add(int64(len(c.Data))); c.Last {
			ends[c.Stream].Add(1)
			if c.Stream == 0 && got.Load() != 2 {
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
	if ends[0].Load() != 1 || got.Load() != 2 {
		t.Errorf("%d bytes and %d ends", got.Load(), ends[0].Load())
	}
}

// SPEC 6.14: held is what has no end; what it has is there all the same, up to the last
// look.
func TestHeldIsWhatThePipeSays(t *testing.T) {
	var out bytes.Buffer
	var ends [2]atomic.Int64
	k := newCommand(t, &out, Config{Output: countEnds(&ends)})
	k.startWithoutCollectors()
	k.write("first")
	if !k.c.Drain(now(), now()) {
		t.Error("not held")
	}
	k.write(", last")
	end, kept := k.finish()
	if ends[0].Load() != 1 || ends[1].Load() != 1 {
		t.Errorf("the callback got %d and %d ends", ends[0].Load(), ends[1].Load())
	}
	if !end.Held || end.Err != nil || kept != "first, last" || out.String() != kept {
		t.Errorf("%+v, kept %q, written %q", end, kept, &out)
	}
}

// A collector that waits for a slow writer keeps nobody from reading the rest.
func TestDrainWhileTheWriterIsBusy(t *testing.T) {
	for _, collectors := range []bool{true, false} {
		writing, release := make(chan struct{}, 10), make(chan struct{})
		var out bytes.Buffer
		var ends [2]atomic.Int64
		k := newCommand(t, writerFunc(func(p []byte) (int, error) {
			writing <- struct{}{}
			<-release
			return out.Write(p)
		}), Config{Output: countEnds(&ends)})
		if collectors {
			k.c.Start()
			k.write("one")
			<-writing
			k.write("two")
		} else {
			k.startWithoutCollectors()
			k.write("onetwo")
		}
		k.stdout.Close()
		if k.c.Drain(now(), now()) {
			t.Error("held")
		}
		time.Sleep(soon) // in which the callback gets the end
		close(release)
		time.Sleep(soon) // in which the collector sees it as well
		end, kept := k.finish()
		if ends[0].Load() != 1 || ends[1].Load() != 1 {
			t.Errorf("the callback got %d and %d ends", ends[0].Load(), ends[1].Load())
		}
		if end.Held || end.Err != nil || end.Unwritten != 0 || kept != "onetwo" || out.String() != kept {
			t.Errorf("%+v, kept %q, written %q", end, kept, &out)
		}
	}
}

// Somebody who writes without an end does not keep Drain from coming to one, nor does what
// a writer has not taken grow without a bound.
func TestDrainOfAFlood(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	k := newCommand(t, writerFunc(func(p []byte) (int, error) { <-release; return len(p), nil }), Config{})
	k.c.Start()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		block := make([]byte, 64<<10)
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := k.stdout.Write(block); err != nil {
					return
				}
			}
		}
	}()
	total := func() int64 {
		k.c.mu.Lock()
		defer k.c.mu.Unlock()
		return k.c.streams[0].ring.total
	}
	const most = pipeSize + 2*readSize // what the pipe holds, and one read more of each that reads
	for total() < 3*most {
		before := total()
		if !k.c.Drain(now(), now()) {
			t.Fatal("not held")
		}
		if read := total() - before; read > 2*most {
			t.Fatalf("read %d bytes at once", read)
		}
	}
	end := k.c.Finish(context.Background(), now(), now())
	close(stop)
	<-stopped
	stdout, _, _ := k.c.Kept(false)
	if !end.Held || stdout.Total < 3*most || stdout.Total > 8*most || stdout.Total != end.Unwritten {
		t.Errorf("%+v of %d", end, stdout.Total)
	}
}

// SPEC 6.14: output that a writer has not taken in time is counted, to the byte.
func TestUnwritten(t *testing.T) {
	broken := errors.New("broken")
	release := make(chan struct{})
	defer close(release)
	for _, tt := range []struct {
		name   string
		writer func(p []byte) (int, error)
		want   int64
		err    error
	}{
		{"blocks", func(p []byte) (int, error) { <-release; return len(p), nil }, 6, errSlow},
		{"fails", func(p []byte) (int, error) { return 0, broken }, 6, broken},
		{"fails in the middle", func(p []byte) (int, error) { return 1, broken }, 5, broken},
		{"takes less", func(p []byte) (int, error) { return 1, nil }, 5, io.ErrShortWrite},
		{"is wrong about it", func(p []byte) (int, error) { return 100, nil }, 3, io.ErrShortWrite},
		{"panics", func(p []byte) (int, error) { panic(broken) }, 6, broken},
		{"exits its goroutine", func(p []byte) (int, error) { runtime.Goexit(); return 0, nil }, 6, timeout.ErrGoexit},
		{"works", func(p []byte) (int, error) { return len(p), nil }, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var failed error
			k := newCommand(t, writerFunc(tt.writer), Config{Fail: func(err error) { failed = err }})
			wait := time.Minute
			if tt.err == errSlow {
				wait = 5 * soon
			}
			k.startWithoutCollectors()
			k.write("abc")
			k.c.Drain(now(), now())
			k.write("def")
			k.stdout.Close()
			end := k.c.Finish(context.Background(), now().Add(wait), now())
			if own := tt.err == broken && strings.Contains(tt.name, "panics") || tt.err == timeout.ErrGoexit; own != (failed != nil) {
				t.Errorf("Fail was called with %v", failed)
			}
			if end.Unwritten != tt.want || !errors.Is(end.Err, tt.err) {
				t.Errorf("%+v, want %d, %v", end, tt.want, tt.err)
			}
			if tt.err != nil && !strings.Contains(end.Err.Error(), "cmd.Stdout") {
				t.Errorf("%v does not name the writer", end.Err)
			}
		})
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

// A stream that cannot be read is no end, and no fault of the process that holds it.
func TestReadError(t *testing.T) {
	for _, collectors := range []bool{true, false} {
		k := newCommand(t, nil, Config{})
		p := k.c.streams[0].pipe
		p.r.Close()
		var err error
		if p.r, err = os.Open("/"); err != nil { // a directory cannot be read
			t.Fatal(err)
		}
		if p.conn, err = p.r.SyscallConn(); err != nil {
			t.Fatal(err)
		}
		if collectors {
			k.c.Start()
		} else {
			k.startWithoutCollectors()
		}
		for range 2 {
			if !k.c.Drain(now(), now()) {
				t.Error("ended")
			}
		}
		if end, _ := k.finish(); !errors.Is(end.Err, syscall.EISDIR) {
			t.Errorf("%+v", end)
		}
	}
}

// countEnds makes a callback that counts the last chunks of both streams.
func countEnds(ends *[2]atomic.Int64) func(Chunk) {
	return func(c Chunk) {
		if c.Last {
			ends[c.Stream].Add(1)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

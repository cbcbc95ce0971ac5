//go:build unix

package simulate_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A subject is a command whose tree is asked what the contract says, on this system or on the machine.
type subject struct {
	*testing.T
	tree    proctree.Tree
	out     io.ReadCloser      // the command's stdout
	closeIn func()             // ends its stdin
	meter   func() waits.Meter // nil if waits for input are not shown
	soon    time.Duration      // how long what must not happen is waited for
	pid     int
	wide    bool // the containment finds what has left the group
}

// ready waits for n bytes of output, which say how far the command has come.
func (s *subject) ready(n int) {
	s.Helper()
	if _, err := io.ReadFull(s.out, make([]byte, n)); err != nil {
		s.Fatalf("waiting for %d bytes: %v", n, err)
	}
}

// ends waits for the leader.
func (s *subject) ends() {
	s.Helper()
	if !s.tree.Wait(context.Background(), time.Now().Add(time.Minute)) {
		s.Fatal("the leader has not ended")
	}
}

// kill kills the tree, of which nothing may be left.
func (s *subject) kill() {
	s.Helper()
	if left, unsure := s.tree.Kill(time.Now().Add(time.Minute)); len(left)+len(unsure) > 0 {
		s.Errorf("Kill has left %v, and perhaps %v", left, unsure)
	}
}

// code demands how the leader ended, as a shell reports it.
func (s *subject) code(want int) {
	s.Helper()
	err, reaped := s.tree.State()
	if !reaped {
		s.Fatal("the leader has not been reaped")
	}
	got := 0
	var exit *exec.ExitError
	var simulated EndError
	switch {
	case errors.As(err, &exit):
		if got = exit.ExitCode(); got < 0 {
			got = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	case errors.As(err, &simulated):
		got = simulated.Code
	case err != nil:
		s.Fatal(err)
	}
	if got != want {
		s.Errorf("the code is %d, want %d", got, want)
	}
}

// end demands that nothing holds the output any more, after n bytes.
func (s *subject) end(n int64) {
	s.Helper()
	if got, err := io.Copy(io.Discard, s.out); err != nil || got != n {
		s.Errorf("%d bytes of output (%v), want %d", got, err, n)
	}
}

var (
	forever = Step{Do: Sleep, D: time.Hour}
	say     = Step{Do: Write, FD: 1, N: 1}
)

// contract has what a Tree and a pipe do, so that what the machine pretends is checked on this system.
var contract = []struct {
	name   string
	script Script
	do     func(*subject)
}{
	{"exit", Script{{Do: Exit, N: 3}}, func(s *subject) { s.ends(); s.kill(); s.code(3); s.end(0) }},
	{"success", Script{say}, func(s *subject) { s.ends(); s.kill(); s.code(0); s.end(1) }},
	{"death", Script{{Do: Die, Signal: syscall.SIGTERM}}, func(s *subject) { s.ends(); s.kill(); s.code(143) }},
	{"a wait that ends before the leader", Script{say, forever}, func(s *subject) {
		s.ready(1)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if s.tree.Wait(ctx, time.Time{}) || s.tree.Wait(context.Background(), time.Now()) {
			s.Error("Wait says that the leader has ended")
		}
		s.kill()
		s.code(137)
		s.end(0)
	}},
	{"a request to end", Script{say, forever}, func(s *subject) { s.ready(1); s.tree.Ask(syscall.SIGTERM); s.ends(); s.kill(); s.code(143) }},
	{"a request that is handled", Script{{Do: Trap, Signal: syscall.SIGTERM, Script: Script{say, {Do: Exit, N: 5}}}, say, forever}, func(s *subject) {
		s.ready(1)
		s.tree.Ask(syscall.SIGTERM)
		s.ends()
		s.kill()
		s.code(5)
		s.end(1)
	}},
	{"a request that is ignored", Script{{Do: Ignore, Signal: syscall.SIGTERM}, say, forever}, func(s *subject) {
		s.ready(1)
		s.tree.Ask(syscall.SIGTERM)
		if s.tree.Wait(context.Background(), time.Now().Add(s.soon)) {
			s.Error("the leader has ended")
		}
		s.kill()
		s.code(137)
	}},
	{"a request to a process that is stopped", Script{say, {Do: Stop}, say, forever}, func(s *subject) {
		s.ready(1)
		s.tree.Ask(syscall.SIGTERM)
		for !s.tree.Wait(context.Background(), time.Now().Add(s.soon)) { // on this system it may stop after the request
			s.tree.Ask(syscall.SIGTERM)
		}
		s.kill()
		s.code(143)
	}},
	{"a signal, and the command goes on", Script{{Do: Trap, Signal: syscall.SIGUSR1, Script: Script{say}}, say, forever}, func(s *subject) {
		s.ready(1)
		if err := s.tree.Signal(syscall.SIGUSR1); err != nil {
			s.Error(err)
		}
		s.ready(1)
		s.kill()
		s.code(137)
	}},
	{"a signal to nobody", Script{}, func(s *subject) {
		s.ends()
		if s.tree.Alive() {
			s.Error("something is alive")
		}
		s.kill()
	}},
	{"a child that outlives the leader", Script{{Do: Fork, Script: Script{say, forever}}, {Do: Read, N: 1}, {Do: Exit}}, func(s *subject) {
		s.ready(1)
		s.closeIn()
		s.ends()
		if !s.tree.Alive() {
			s.Error("nothing is alive")
		}
		if all, _ := s.tree.Others(time.Now().Add(time.Minute)); len(all) != 1 {
			s.Errorf("others: %v", all)
		}
		s.kill()
		s.code(0)
		s.end(0)
	}},
	{"a child that is released", Script{{Do: Fork, Script: Script{{Do: Read, N: 1}, say}}, say, {Do: Exit}}, func(s *subject) {
		s.ready(1)
		s.ends()
		s.tree.Release(time.Now().Add(time.Minute))
		s.code(0)
		s.closeIn()
		s.end(1)
	}},
	{"a daemon", Script{{Do: Daemon, Script: Script{say, forever}}, {Do: Read, N: 1}, {Do: Exit}}, func(s *subject) {
		if !s.wide {
			s.Skip("the containment does not promise it")
		}
		s.ready(1)
		s.closeIn()
		s.ends()
		s.kill()
		s.end(0)
	}},
	{"a child that ignores the request", Script{{Do: Fork, Script: Script{{Do: Ignore, Signal: syscall.SIGTERM}, say, forever}}, {Do: Sleep, D: time.Hour}}, func(s *subject) {
		s.ready(1)
		s.tree.Ask(syscall.SIGTERM)
		s.ends()
		if !s.tree.Alive() {
			s.Error("nothing is alive")
		}
		s.kill()
		s.code(143)
		s.end(0)
	}},
	{"the list of processes", Script{{Do: Fork, Script: Script{say, forever}}, forever}, func(s *subject) {
		s.ready(1)
		all, more := s.tree.Snapshot(time.Now().Add(time.Minute))
		leader := false
		for _, p := range all {
			leader = leader || p.Pid == s.pid || p.Parent == s.pid // which is a helper
		}
		if len(all) != 2 && runtime.GOOS == "linux" || more || !leader && len(all) > 0 {
			s.Errorf("%v, and more: %v; the leader is %d", all, more, s.pid)
		}
		s.kill()
	}},
	{"a pipe that is full", Script{{Do: Write, FD: 1, N: 200_000}, {Do: Exit, N: 4}}, func(s *subject) {
		if s.tree.Wait(context.Background(), time.Now().Add(s.soon)) {
			s.Error("the leader has ended, though nobody has read")
		}
		s.end(200_000)
		s.ends()
		s.kill()
		s.code(4)
	}},
	{"a pipe without a reader", Script{{Do: Read, N: 1}, say, say, forever}, func(s *subject) {
		_ = s.out.Close()
		s.closeIn()
		s.ends()
		s.kill()
		s.code(141)
	}},
	{"a parent that waits for its children", Script{{Do: Fork, Script: Script{{Do: Read, N: 1}}}, say, {Do: Await}, {Do: Exit, N: 6}}, func(s *subject) {
		s.ready(1)
		if s.tree.Wait(context.Background(), time.Now().Add(s.soon)) {
			s.Error("the leader has ended before its child")
		}
		s.closeIn()
		s.ends()
		s.kill()
		s.code(6)
	}},
	{"a wait for input", Script{{Do: Fork, Script: Script{say, {Do: Read, N: 1}}}, {Do: Await}}, func(s *subject) {
		if s.meter == nil {
			s.Skip("the system does not show it")
		}
		s.ready(1)
		look := s.meter()
		if look().State != waits.None {
			s.Error("a wait that one look has found")
		}
		var l waits.Look
		for n := 0; n < 100 && l.State == waits.None; n++ { // the child of this system may not have begun to wait
			time.Sleep(waits.LookEvery)
			l = look()
		}
		// The runtime of a Go program has threads that wait for a time, so this program only waits probably.
		if l.State != waits.InputCertainly && l.State != waits.InputIfPrompted || l.Pid == s.pid || l.Pid == 0 {
			s.Errorf("%+v, the leader is %d", l, s.pid)
		}
		s.kill()
	}},
	{"a stream that the leader closes", Script{say, {Do: Close, FD: 1}, forever}, func(s *subject) { s.end(1); s.kill(); s.code(137) }},
}

// SPEC 6.1, 6.5, 6.6: what the machine pretends is what this system does, in each containment.
func TestContract(t *testing.T) {
	for _, row := range contract {
		t.Run("machine/"+row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(row.script)
				r, w, _ := m.Pipe()
				in, end, _ := m.Pipe()
				cmd := &exec.Cmd{Stdin: in, Stdout: w}
				tree, err := m.Start(context.Background(), cmd)
				if err != nil {
					t.Fatal(err)
				}
				_ = w.Close()
				_ = in.Close()
				s := &subject{T: t, tree: tree, out: r, closeIn: func() { _ = end.Close() }, soon: time.Hour / 2, pid: cmd.Process.Pid, wide: true,
					meter: func() waits.Meter { return m.WatchInput(tree) }}
				row.do(s)
				_ = r.Close()
				s.tree.Close()
				for _, wrong := range m.Off() {
					t.Error(wrong)
				}
			})
		})
		for _, kind := range []proctree.Kind{proctree.Auto, proctree.Group, proctree.Descendants, proctree.Cgroup, proctree.Helper} {
			t.Run(kind.String()+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				cmd := performing(row.script)
				r, w := pipe(t)
				in, end := pipe(t)
				cmd.Stdin, cmd.Stdout = in, w
				tree, err := proctree.Start(context.Background(), cmd, kind)
				if errors.Is(err, errors.ErrUnsupported) || err != nil && kind == proctree.Cgroup {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = w.Close()
				hung := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
				defer hung.Stop()
				s := &subject{T: t, tree: tree, out: r, closeIn: func() { _ = end.Close() }, soon: 50 * time.Millisecond, pid: cmd.Process.Pid,
					wide: tree.Contained() != proctree.Group}
				if file, ok := waits.InputOf(in); ok && s.wide {
					s.meter = func() waits.Meter { return waits.Watch(tree, file) }
				}
				defer func() { s.tree.Close() }()
				row.do(s)
			})
		}
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

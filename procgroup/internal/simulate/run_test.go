//go:build unix

package simulate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A user is code of the caller's: a writer, a callback, a hook or a logger. It is data, so that a run can be kept.
type user struct {
	How string        `json:"how,omitempty"` // "" takes everything at once
	D   time.Duration `json:"d,omitempty"`   // of a slow one, for each call
	N   int           `json:"n,omitempty"`   // the call in which it misbehaves, from 0
}

// How code of the caller's may misbehave.
const (
	absent   = "absent"
	slow     = "slow"
	block    = "block"
	fail     = "fail" // a writer only
	panics   = "panic"
	goexit   = "goexit"
	callback = "call" // back into the library
)

// An event happens to a command at an instant.
type event struct {
	At time.Duration  `json:"at"`
	Do string         `json:"do"` // cancel, wait, signal, hold (the idle check, for D) or holdOuter
	S  syscall.Signal `json:"s,omitempty"`
	D  time.Duration  `json:"d,omitempty"`
}

// An outer is the execution that a command runs in. It is there if it has a limit.
type outer struct {
	Total time.Duration `json:"total,omitempty"`
	Idle  time.Duration `json:"idle,omitempty"`
	Lead  time.Duration `json:"lead,omitempty"` // how long it runs before the command

	Reserve time.Duration `json:"reserve,omitempty"`
}

func (o outer) is() bool { return o.Total > 0 || o.Idle > 0 }

// A simRun is one run of a command on a simulated machine.
type simRun struct {
	Script      Script        `json:"script"`
	Escapes     bool          `json:"escapes,omitempty"` // the containment loses what leaves the group
	Faults      Faults        `json:"faults,omitzero"`
	Total       time.Duration `json:"total,omitempty"`
	Idle        time.Duration `json:"idle,omitempty"`
	Outer       outer         `json:"outer,omitzero"`
	OwnContext  bool          `json:"ownContext,omitempty"` // it is of exec.CommandContext, and "cancel" ends that context
	Reserve     time.Duration `json:"reserve,omitempty"`    // with a closing signal, SIGUSR2
	Kill        time.Duration `json:"kill,omitempty"`
	Abort       time.Duration `json:"abort,omitempty"`
	MaxOutput   int           `json:"maxOutput,omitempty"`
	OutputLimit int64         `json:"outputLimit,omitempty"`
	OnePipe     bool          `json:"onePipe,omitempty"`
	Orphans     bool          `json:"orphans,omitempty"`
	Stacks      bool          `json:"stacks,omitempty"`
	Work        bool          `json:"work,omitempty"`
	CPURate     float64       `json:"cpuRate,omitempty"` // from which work counts; 0 is the default
	Notify      bool          `json:"notify,omitempty"`
	StopOnInput bool          `json:"stopOnInput,omitempty"`
	Told        bool          `json:"told,omitempty"` // of waits for input, by Input
	Input       user          `json:"input,omitzero"`
	Chunk       int           `json:"chunk,omitempty"` // of input, 0 is 20000
	Late        time.Duration `json:"late,omitempty"`  // of Victim
	Victim      string        `json:"victim,omitempty"`
	Stdin       user          `json:"stdin,omitzero"`
	Stdout      user          `json:"stdout,omitzero"`
	Stderr      user          `json:"stderr,omitzero"`
	Output      user          `json:"output,omitzero"`
	Hook        user          `json:"hook,omitzero"`
	Logger      user          `json:"logger,omitzero"`
	Events      []event       `json:"events,omitempty"`
}

func (r simRun) String() string {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s\n%v", text, r.Script)
}

// A seen is what a run showed.
type seen struct {
	simRun
	m         *Machine
	begun     time.Time
	returned  time.Time
	cancelled time.Time // zero if it was not
	res       *procgroup.Result
	err       error
	again     error // of the second Wait
	finished  []error
	snaps     []timeout.Snapshot // of Finished
	told      []toldWait
	holds     []hold
	inner     context.Context // of the command's execution
	outside   context.Context // of the enclosing one
	outerErr  error
	outerFrom time.Time
	failedAt  [2]time.Time // when a writer has failed
	exceeded  int
	waited    []error // what other calls of Wait returned
	got       [2][]byte
	chunks    [2]int64 // offset of the next byte of the callback
	delivered int64    // bytes that the callback got
	late      []string // what of the caller's was called after Wait had returned
	last      [2]int   // chunks with Last
	wrong     []string // found while it ran

	mu      sync.Mutex
	calls   map[string]int
	release chan struct{}
	process *procgroup.Process
	over    bool
	fed     int  // bytes of input
	stopped bool // release is closed
}

const closingSignal = syscall.SIGUSR2

var errWriter = errors.New("the writer fails")

// do is a call of code of the caller's.
func (s *seen) do(name string, u user) error {
	s.mu.Lock()
	n := s.calls[name]
	s.calls[name]++
	if s.over {
		s.late = append(s.late, name)
	}
	p := s.process
	s.mu.Unlock()
	if u.How == slow {
		select {
		case <-time.After(u.D):
		case <-s.release:
		}
		return nil
	}
	if n != u.N {
		return nil
	}
	switch u.How {
	case block:
		<-s.release
	case fail:
		return errWriter
	case panics:
		panic("the caller's code panics")
	case goexit:
		runtime.Goexit()
	case callback:
		if p != nil {
			p.Input()
			p.Answered()
			_ = p.Signal(syscall.SIGWINCH)
		}
	}
	return nil
}

// A simReader is cmd.Stdin. It has a few lines, and then the end.
type simReader struct {
	s     *seen
	reads int
}

func (r *simReader) Read(b []byte) (int, error) {
	if err := r.s.do("stdin", r.s.Stdin); err != nil {
		return 0, err
	}
	if r.reads++; r.reads > 5 {
		return 0, io.EOF
	}
	n := min(len(b), cmp.Or(r.s.Chunk, 20_000))
	r.s.mu.Lock()
	r.s.fed += n
	r.s.mu.Unlock()
	return n, nil
}

type simWriter struct {
	s      *seen
	stream int
	name   string
	user   user
}

func (w *simWriter) Write(b []byte) (int, error) {
	if err := w.s.do(w.name, w.user); err != nil {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		w.s.failedAt[w.stream] = time.Now()
		return 0, err
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.got[w.stream] = append(w.s.got[w.stream], b...)
	return len(b), nil
}

// checkBytes compares bytes with those that processes wrote to a stream at an offset.
func checkBytes(stream int, offset int64, b []byte) error {
	for i, c := range b {
		if want := ByteOf(stream+1, offset+int64(i)); c != want {
			return fmt.Errorf("byte %d is %q, want %q", offset+int64(i), c, want)
		}
	}
	return nil
}

type simLog struct{ do func() }

func (simLog) Enabled(context.Context, slog.Level) bool    { return true }
func (l simLog) Handle(context.Context, slog.Record) error { l.do(); return nil }
func (l simLog) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l simLog) WithGroup(string) slog.Handler             { return l }
func (s *seen) bad(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}
func (s *seen) writer(i int, name string, u user) io.Writer {
	if u.How == absent {
		return nil
	}
	return &simWriter{s, i, name, u}
}

// stop ends what blocks. The caller holds s.mu.
func (s *seen) stop() {
	if !s.stopped {
		s.stopped = true
		close(s.release)
	}
}

// run runs the command, in a bubble, and ends everything that it has left.
func (r simRun) run() *seen {
	s := &seen{simRun: r, m: New(r.Script), calls: make(map[string]int), release: make(chan struct{})}
	s.m.Faults, s.m.Contains = r.Faults, !r.Escapes
	s.m.Late = map[string]time.Duration{r.Victim: r.Late}
	ctx, cancel := context.WithCancel(machine.With(context.Background(), s.m))
	defer cancel()
	cmd := &exec.Cmd{Path: "/simulated", Args: []string{"simulated"}}
	if r.OwnContext {
		s.m.Command, cancel = context.WithCancel(context.Background())
		defer cancel()
		cmd = exec.CommandContext(s.m.Command, "/simulated")
	}
	if r.Stdin.How != absent {
		cmd.Stdin = &simReader{s: s}
	}
	cmd.Stdout = s.writer(0, "stdout", r.Stdout)
	if !r.OnePipe {
		cmd.Stderr = s.writer(1, "stderr", r.Stderr)
	}
	hooks := timeout.Hooks{Exceeded: func(context.Context, timeout.Snapshot) {
		s.mu.Lock()
		s.exceeded++
		s.mu.Unlock()
	}, Started: func(ctx context.Context, _ timeout.Snapshot) { s.inner = ctx }, Finished: func(_ context.Context, snap timeout.Snapshot) {
		s.mu.Lock()
		s.finished = append(s.finished, snap.Err)
		s.snaps = append(s.snaps, snap)
		s.mu.Unlock()
	}}
	misbehaving := timeout.Hooks{}
	if r.Hook.How != "" {
		f := func(context.Context, timeout.Snapshot) { _ = s.do("hook", r.Hook) }
		misbehaving = timeout.Hooks{Started: f, NearIdle: f, Exceeded: f, Abandoned: f, Finished: f}
	}
	options := []timeout.Option{timeout.WithHooks(hooks), timeout.WithHooks(misbehaving)}
	if r.Logger.How != "" {
		options = append(options, timeout.WithLogger(slog.New(simLog{func() { _ = s.do("logger", r.Logger) }})))
	}
	stop := procgroup.Stop{Grace: r.Kill, AbortDelay: r.Abort, Orphans: r.Orphans, Stacks: r.Stacks}
	output := procgroup.Capture{Tail: r.MaxOutput, Limit: r.OutputLimit, OnePipe: r.OnePipe}
	input := procgroup.Input{Stop: r.StopOnInput}
	opts := []procgroup.Option{procgroup.Limits{Total: r.Total, Idle: r.Idle, Reserve: r.Reserve}, procgroup.WithOptions(options...)}
	if r.Reserve > 0 || r.Outer.Reserve > 0 {
		stop.Closing = closingSignal
	}
	if r.Work {
		opts = append(opts, procgroup.Activity{CPU: true, CPURate: r.CPURate})
	}
	if r.Told {
		input.Notify = func(w procgroup.InputWait) {
			s.mu.Lock()
			s.told = append(s.told, toldWait{time.Now(), w})
			s.mu.Unlock()
			_ = s.do("input", r.Input)
		}
	}
	if r.Output.How != absent {
		output.Each = func(c procgroup.Chunk) {
			_ = s.do("output", r.Output)
			s.mu.Lock()
			defer s.mu.Unlock()
			i := 0
			if c.Stderr {
				i = 1
			}
			s.chunks[i] += c.Skipped
			if s.last[i] > 0 && (len(c.Data) > 0 || c.Skipped > 0) {
				s.bad("the callback got %d bytes of stream %d after the last", len(c.Data), i)
			}
			if err := checkBytes(i, s.chunks[i], c.Data); err != nil {
				s.bad("the callback, stream %d: %v", i, err)
			}
			s.chunks[i] += int64(len(c.Data))
			s.delivered += int64(len(c.Data))
			if c.Last {
				s.last[i]++
			}
		}
	}
	opts = append(opts, stop, output, input, procgroup.Notify{Socket: r.Notify})
	hung := time.AfterFunc(time.Hour, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bad("the call has not returned after an hour")
		s.stop()
	})
	defer hung.Stop()
	if r.Outer.is() {
		s.outerFrom = time.Now()
		s.outerErr = timeout.Run(ctx, func(ctx context.Context) error {
			s.outside = ctx
			time.Sleep(r.Outer.Lead)
			s.command(ctx, cancel, cmd, opts)
			return s.err
		}, timeout.WithName("outer"), timeout.Config{Total: r.Outer.Total, Idle: r.Outer.Idle, Reserve: r.Outer.Reserve, Grace: time.Hour})
	} else {
		s.command(ctx, cancel, cmd, opts)
	}
	time.Sleep(time.Minute) // what is late shows
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	time.Sleep(time.Minute)
	s.wrong = append(s.wrong, s.m.Off()...)
	return s
}

// command starts the command and waits for it.
func (s *seen) command(ctx context.Context, cancel func(), cmd *exec.Cmd, opts []procgroup.Option) {
	s.begun = time.Now()
	p, err := procgroup.Start(ctx, cmd, opts...)
	if err != nil {
		s.err, s.returned = err, time.Now()
	} else {
		s.mu.Lock()
		s.process = p
		s.mu.Unlock()
		var waits sync.WaitGroup
		returned := make(chan struct{})
		for _, e := range s.Events {
			waits.Go(func() {
				timer := time.NewTimer(e.At)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-returned:
					return
				}
				switch e.Do {
				case "cancel":
					s.mu.Lock()
					if s.cancelled.IsZero() {
						s.cancelled = time.Now()
					}
					s.mu.Unlock()
					cancel()
				case "signal":
					_ = p.Signal(e.S)
				case "hold":
					s.hold(s.inner, e.D, false)
				case "holdOuter":
					if s.outside != nil {
						s.hold(s.outside, e.D, true)
					}
				case "wait":
					_, err := p.Wait()
					s.mu.Lock()
					s.waited = append(s.waited, err)
					s.mu.Unlock()
				}
			})
		}
		s.res, s.err = p.Wait()
		s.mu.Lock()
		s.returned, s.over = time.Now(), true
		s.mu.Unlock()
		close(returned)
		_, s.again = p.Wait()
		if in := p.Input(); in != s.res.Input {
			s.bad("Input after Wait is %+v, the result has %+v", in, s.res.Input)
		}
		if err := p.Signal(syscall.SIGUSR1); err != os.ErrProcessDone {
			s.bad("Signal after Wait: %v", err)
		}
		for _, pid := range s.m.Alive() {
			if !s.Orphans && !s.Escapes && !listed(s.res, pid) {
				s.bad("process %d is alive and listed nowhere", pid)
			}
		}
		waits.Wait()
	}
}

// A hold is a time in which an idle check was held.
type hold struct {
	from, to time.Time
	outer    bool // of the enclosing execution only
}

func (s *seen) hold(ctx context.Context, d time.Duration, outer bool) {
	release := heartbeat.Hold(ctx)
	from := time.Now()
	time.Sleep(d)
	release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = append(s.holds, hold{from, time.Now(), outer})
}

func listed(res *procgroup.Result, pid int) bool {
	for _, all := range [][]int{res.Survivors, res.Unidentified} {
		for _, p := range all {
			if p == pid {
				return true
			}
		}
	}
	return false
}

//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.16: an idle limit that is overdue waits for SIGCONT, the longer the more it is overdue, but at least 100 ms and
// at most 1 s. One that is on time waits for nothing.
func TestOverdueLimitWaitsForContinue(t *testing.T) {
	const limit = time.Minute
	for _, tt := range []struct {
		name      string
		late      time.Duration
		continued time.Duration // after the limit has fired
		want      bool
		took      time.Duration
	}{
		{"on time", 10*time.Millisecond - 1, 1, false, 0},
		{"a little overdue", 10 * time.Millisecond, 100*time.Millisecond - 1, true, 100*time.Millisecond - 1},
		{"a little overdue, and too late", 10 * time.Millisecond, 100*time.Millisecond + 1, false, 100 * time.Millisecond},
		{"overdue", 300 * time.Millisecond, 300*time.Millisecond - 1, true, 300*time.Millisecond - 1},
		{"overdue, and too late", 300 * time.Millisecond, 300*time.Millisecond + 1, false, 300 * time.Millisecond},
		{"long overdue", time.Hour, time.Second - 1, true, time.Second - 1},
		{"long overdue, and too late", time.Hour, time.Second + 1, false, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &supervisor{continued: make(chan os.Signal, 1)}
				begun := time.Now()
				silence := limit + tt.late
				time.Sleep(silence)
				time.AfterFunc(tt.continued, func() { s.continued <- unix.SIGCONT })
				fired := time.Now()
				got := s.wasStopped(begun, &timeout.Error{Kind: timeout.ErrIdle, Limit: limit, Figures: timeout.Figures{Elapsed: silence, SinceBeat: silence}})
				if took := time.Since(fired); got != tt.want || took != tt.took {
					t.Errorf("%v after %v, want %v after %v", got, took, tt.want, tt.took)
				}
			})
		})
	}
}

// SPEC 6.11: a command whose file system does not answer cannot keep the program from ending.
func TestHungStart(t *testing.T) {
	t.Parallel()
	bin := ours(t)
	const said = "timeout: failed to run command 'true': the file system does not answer\n"
	for _, tt := range []struct{ name, script, exit string }{
		{"limit", "exec timeout .1 true", "exit status 124"},
		{"idle limit", "exec timeout --idle .1 0 true", "exit status 124"},
		{"limit, preserved", "exec timeout -p .1 true", "exit status 143"},
		{"signal", "{ until [ -e sent ]; do /bin/sleep .01; done; kill -HUP $$; } & exec timeout 60 true", "signal: hangup"},
		{"alarm", "{ until [ -e sent ]; do /bin/sleep .01; done; kill -ALRM $$; } & exec timeout 60 true", "exit status 124"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, want := runScript(t, bin, tt.script, "HUNG=1"), (result{tt.exit, "", said}); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// A signal that is received before the command is started is the first that is passed on, and others after it, however
// many there are, do not keep the program from enforcing limits.
func TestEarlySignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &supervisor{signals: make(chan os.Signal, 1)}
		started, done := make(chan error), make(chan error)
		s.signals <- unix.SIGUSR1
		go func() { done <- s.awaitStart(started) }()
		synctest.Wait()
		s.signals <- unix.SIGHUP
		started <- nil
		if err := <-done; err != nil || s.early != unix.SIGUSR1 || len(s.signals) != 1 {
			t.Errorf("%v, first %v, then %d", err, s.early, len(s.signals))
		}
	})
}

// A command that has been started is watched, also if its start is seen only after the time for it, as after a stop.
func TestLateStart(t *testing.T) {
	for range 100 {
		s := &supervisor{end: time.Now().Add(-time.Minute)}
		started := make(chan error, 1)
		started <- nil
		if err := s.awaitStart(started); err != nil {
			t.Fatal(err)
		}
	}
}

// SPEC 3.16: time in which deadline was stopped does not count as silence of a start, but towards the total.
func TestStoppedDuringStart(t *testing.T) {
	const never = time.Hour
	for name, tt := range map[string]struct {
		total, idle              time.Duration // 0 means none; a negative total has passed
		signal, continued, start time.Duration // when they come; 0 means never
		want                     error
		took                     time.Duration
	}{
		"not stopped":       {idle: 10 * time.Second, start: 15 * time.Second, want: errHung, took: 11 * time.Second},
		"stopped":           {idle: 10 * time.Second, continued: 9 * time.Second, start: 15 * time.Second, took: 15 * time.Second},
		"stopped, total":    {idle: 10 * time.Second, total: 12 * time.Second, continued: 9 * time.Second, start: never, want: errHung, took: 13 * time.Second},
		"stopped, no limit": {continued: time.Second, start: time.Minute, took: time.Minute},
		"stopped, signal":   {idle: 10 * time.Second, signal: time.Second, continued: 1500 * time.Millisecond, start: never, want: errHung, took: 2 * time.Second},
		"overdue":           {total: -time.Minute, start: 50 * time.Millisecond, took: 50 * time.Millisecond},
		"overdue, no start": {total: -time.Minute, start: never, want: errHung, took: 100 * time.Millisecond},
		"overdue, stopped":  {total: -time.Minute, continued: 50 * time.Millisecond, start: never, want: errHung, took: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &supervisor{options: options{idle: tt.idle}, signals: make(chan os.Signal, 1), continued: make(chan os.Signal, 1)}
				if tt.total != 0 {
					s.end = time.Now().Add(tt.total)
				}
				started := make(chan error, 1)
				time.AfterFunc(tt.start, func() { started <- nil })
				if tt.signal > 0 {
					time.AfterFunc(tt.signal, func() { s.signals <- unix.SIGHUP })
				}
				if tt.continued > 0 {
					time.AfterFunc(tt.continued, func() { s.continued <- unix.SIGCONT })
				}
				begun := time.Now()
				if err := s.awaitStart(started); err != tt.want || time.Since(begun) != tt.took {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
		})
	}
}

// SPEC 3.7: a command that has ended before deadline sees a limit or a signal was not stopped, whatever select chooses. The
// signal stays for the wait for the output.
func TestEndedCommandIsNotStopped(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		s := &supervisor{options: options{foreground: true}, cmd: &command{ended: ended}, signals: make(chan os.Signal, 1)}
		s.signals <- unix.SIGALRM
		if err := s.watch(stopped); err != nil || !s.over || s.limited || len(s.signals) != 1 {
			t.Fatalf("%v; over: %v, limited: %v, %d signals", err, s.over, s.limited, len(s.signals))
		}
	}
}

// A signal that is received as the command ends is kept for the wait for the output, unless others are. It does not keep
// the program from ending.
func TestSignalsAtTheEnd(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan struct{})
			s := &supervisor{
				reporter: &reporter{out: io.Discard}, options: options{foreground: true, command: []string{"a"}},
				cmd: &command{ended: ended, process: &os.Process{Pid: -1}}, signals: make(chan os.Signal, 1),
			}
			done := make(chan error)
			go func() { done <- s.watch(t.Context()) }()
			synctest.Wait()
			s.signals <- unix.SIGHUP
			close(ended)
			select { // as package signal does
			case s.signals <- unix.SIGHUP:
			default:
			}
			if err := <-done; err != nil || !s.over || len(s.signals) != 1 {
				t.Fatalf("%v; over: %v, %d signals", err, s.over, len(s.signals))
			}
		})
	}
}

// SPEC 6.9: output that nobody reads is dropped because of the limit, if that fires before or together with signals.
func TestSignalAfterLimitInDrain(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			r, w := newPipe(t)
			p := &pipe{r: r, file: stdio.New(w)}
			p.read.Store(1)
			s := &supervisor{
				reporter: &reporter{out: io.Discard}, options: options{command: []string{"a"}},
				out: &output{pipes: []*pipe{p}, done: make(chan struct{})}, signals: make(chan os.Signal, 2),
			}
			stopped, cancel := context.WithCancel(t.Context())
			cancel()
			s.signals <- unix.SIGHUP
			s.signals <- unix.SIGHUP
			if s.drain(stopped); !s.limited {
				t.Fatal("the limit does not count")
			}
		})
	}
}

//go:build unix

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A supervisor runs one command. What it does is a sequence of executions of package
// timeout, all of which wait for the same command: the first under the limits of the
// command line; after the first signal that was sent, one under the time that is left
// until the next.
type supervisor struct {
	options
	*reporter
	cmd     *command
	out     *output // nil where the command has our own streams
	status  *status // nil where there is nothing to show
	signals chan os.Signal

	end       time.Time // when the total is up; zero is never
	killing   bool      // the next limit sends KILL
	limited   bool      // a limit has been reached
	signalled bool      // the command has been sent something
	over      bool      // the command has ended, and its output is through
}

// errNextStage ends an execution whose limits do not hold any more, because the kill has
// to be prepared.
var errNextStage = errors.New("a signal was passed on")

func supervise(o options, r *reporter) ending {
	if !o.foreground {
		// It fails where we lead a session, and then there is a group already.
		_ = unix.Setpgid(0, 0)
	}
	s := &supervisor{options: o, reporter: r, signals: make(chan os.Signal, 16)}
	catch(s.signals, o.signal)
	keepIgnored(o.signal)

	if o.status && isTerminal(os.Stderr) {
		s.status = newStatus(o)
		r.redirect(s.status.beside(os.Stderr))
	}
	streams := stdStreams()
	if o.idle > 0 || s.status != nil {
		var err error
		if s.out, err = newOutput(streams, s.status, r); err != nil {
			r.say("%s", reason(err))
			return ending{code: exitFailed}
		}
		streams = s.out.forCommand
	}
	cmd, err := start(o.command, streams)
	if s.out != nil {
		s.out.closeForCommand()
	}
	if err != nil {
		return s.cannotStart(err)
	}
	ignoreTerminalStops()
	s.cmd = cmd
	s.wait()
	s.finish()
	return s.ending()
}

// finish takes the status off the terminal.
func (s *supervisor) finish() {
	if s.status != nil {
		s.status.stop()
		s.redirect(os.Stderr)
	}
}

func (s *supervisor) cannotStart(err error) ending {
	s.finish()
	switch {
	case errors.Is(err, unix.EAGAIN):
		s.say("fork system call failed: %s", reason(err))
		return ending{code: exitFailed}
	case errors.Is(err, unix.ENOENT):
		s.say("failed to run command %s: %s", quote(s.command[0]), reason(err))
		return ending{code: exitNotFound}
	default:
		s.say("failed to run command %s: %s", quote(s.command[0]), reason(err))
		return ending{code: exitCannotExecute}
	}
}

// wait returns when the command has ended.
func (s *supervisor) wait() {
	limits := timeout.Config{Total: s.total, Idle: s.idle, Grace: math.MaxInt64}
	if s.total > 0 {
		s.end = time.Now().Add(s.total)
	}
	for {
		err := timeout.Run(context.Background(), s.attend, limits)
		if s.over {
			return
		}
		var stop *timeout.Error
		if errors.As(err, &stop) {
			s.limited = true
			if stop.Kind == timeout.Idle && s.verbose {
				s.say("no output from command %s for %v", quote(s.command[0]), stop.Limit)
			}
			s.send(s.next())
		}
		limits = s.following(stop)
	}
}

// next is the signal that a limit sends.
func (s *supervisor) next() sysSignal {
	if s.killing {
		return unix.SIGKILL
	}
	return s.signal
}

// following gives the limits of the execution after one that ended with stop: the kill
// has to come, if one is wanted and not sent yet, and the total still holds.
func (s *supervisor) following(stop *timeout.Error) timeout.Config {
	next := timeout.Config{Grace: math.MaxInt64}
	if stop != nil && stop.Kind == timeout.Total && !time.Now().Before(s.end) {
		s.end = time.Time{} // that was it
	}
	if !s.end.IsZero() {
		next.Total = max(time.Until(s.end), 1)
	}
	if s.killAfter > 0 && !s.killing {
		s.killing = true
		if next.Total == 0 || s.killAfter < next.Total {
			next.Total = s.killAfter
		}
	}
	return next
}

// attend is the function that is executed: it waits for the command, passes signals on
// to it, and takes its output for its heartbeat.
func (s *supervisor) attend(ctx context.Context) error {
	if s.out != nil {
		s.out.start(ctx)
	}
	if s.status != nil {
		s.status.start(ctx)
	}
	for {
		select {
		case <-s.cmd.ended:
			if s.out != nil {
				// The command cannot write any more, so silence is no fault of its.
				heartbeat.Hold(ctx)
				s.over = s.out.drain(ctx, s.signalled)
				return nil
			}
			s.over = true
			return nil
		case sig := <-s.signals:
			if s.pass(sig.(syscall.Signal)) {
				return errNextStage
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pass passes a signal on that we have received. It reports whether that changes the
// limits.
func (s *supervisor) pass(sig sysSignal) (changes bool) {
	if sig == unix.SIGALRM { // to GNU timeout, this is the limit itself
		s.limited = true
		sig = s.next()
	}
	s.send(sig)
	return s.killAfter > 0 && !s.killing
}

// send signals the command, and everything in our group. The command gets it directly
// too, in case it has left the group.
func (s *supervisor) send(sig sysSignal) {
	s.signalled = true
	if s.verbose {
		s.say("sending signal %s to command %s", signalName(sig), quote(s.command[0]))
	}
	if sig == unix.SIGKILL && !s.foreground {
		s.finish() // nobody could later
	}
	s.cmd.signal(sig)
	if s.foreground {
		return
	}
	signalGroup(sig)
	if sig != unix.SIGKILL && sig != unix.SIGCONT {
		// What is stopped could not act on it.
		s.cmd.signal(unix.SIGCONT)
		signalGroup(unix.SIGCONT)
	}
}

// ending says how the program ends, from how the command did.
func (s *supervisor) ending() ending {
	if s.cmd.err != nil {
		s.say("error waiting for command: %s", reason(s.cmd.err))
		return ending{code: exitFailed}
	}
	status := s.cmd.state.Sys().(syscall.WaitStatus)
	e := ending{code: status.ExitStatus()}
	preserve := s.preserveStatus
	if status.Signaled() {
		sig := status.Signal()
		e = ending{code: 128 + int(sig)}
		if status.CoreDump() {
			s.say("the monitored command dumped core")
		}
		if !s.limited {
			e.signal = sig
		}
		// This much has to be known even where 124 says that a limit was reached.
		preserve = preserve || sig == unix.SIGKILL
	}
	if s.limited && !preserve {
		e.code = timeout.ExitTimeout
	}
	return e
}

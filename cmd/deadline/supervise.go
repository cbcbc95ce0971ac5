//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	// outputGrace is the time that the reader of the output has for the rest of it, from the signal that stopped the
	// command, unless -k sets that time.
	outputGrace = 5 * time.Second
	// outputLast is the least time that the reader has after the end of the command.
	outputLast = time.Second
)

// errNextStage ends an execution after a signal was forwarded, so that the next execution has the limit for the kill.
var errNextStage = errors.New("signal passed on")

// A supervisor runs one command, in a sequence of executions of package timeout that all wait for the command. The
// first execution has the limits of the command line. After each signal, the next execution has the time until the
// following signal as its total.
type supervisor struct {
	options
	*reporter
	cmd       *command
	out       *output             // nil if the command has the streams of deadline
	listener  *procgroup.Listener // nil without --notify
	signals   chan os.Signal
	continued chan os.Signal // SIGCONT

	end         time.Time             // end of the total limit; zero means none
	early       os.Signal             // received before the command was started, and not passed on yet; usually nil
	continuedAt time.Time             // when SIGCONT was last received
	signalledAt time.Time             // when the command was first sent a signal; zero means never
	endedAt     time.Time             // when watch saw the end of the command
	killing     bool                  // the next limit sends SIGKILL
	killGroup   bool                  // the command was sent SIGKILL, and its group must be sent it, too
	limited     bool                  // a limit has fired
	tree        procgroup.ProcessList // the processes of the command when the limit fired; empty without --idle and -v
	over        bool                  // the command has ended, and its output was forwarded or abandoned
}

func supervise(o options, r *reporter) ending {
	if err := o.alive.activity().Check(); err != nil {
		r.say("option '--alive': %v", err)
		return ending{code: exitFailed}
	}
	launched, unwatch := withLauncher(context.Background())
	defer unwatch()
	if !o.foreground {
		// This fails if deadline is a session leader, which already leads its own process group.
		_ = unix.Setpgid(0, 0)
	}
	s := &supervisor{options: o, reporter: r, signals: make(chan os.Signal, maxSignal), continued: make(chan os.Signal, 1)}
	catch(s.signals, o.signal)
	// If the launcher ends, the command gets the signal of the limit, as if deadline had been killed.
	defer context.AfterFunc(launched, func() { s.signals <- o.signal })()
	catchContinue(s.continued)
	keepIgnored(o.signal)

	if messages, err := duplicate(2); err == nil {
		r.redirect(stdio.New(messages))
	}
	streams := stdStreams()
	if o.idle > 0 {
		var err error
		if s.out, err = newOutput(streams, r); err != nil {
			r.say("%s", reason(err))
			return ending{code: exitFailed}
		}
		streams = s.out.forCommand
	}
	s.setEnd()
	env, err := s.listen()
	if err != nil {
		s.finish()
		r.say("option '--notify': %v", err)
		return ending{code: exitFailed}
	}
	cmd, started := start(o.command, env, streams, o.signal)
	err = s.awaitStart(started)
	if s.out != nil {
		s.out.closeForCommand()
	}
	if errors.Is(err, errHung) {
		return s.hung()
	} else if err != nil {
		return s.cannotStart(err)
	}
	ignoreTerminalStops()
	s.cmd = cmd
	s.wait()
	s.finish()
	if s.killGroup {
		signalGroup(unix.SIGKILL) // also ends deadline, unless it is process 1
		<-s.cmd.ended
	}
	return s.ending()
}

// listen creates the socket of --notify, and returns the environment of the command. Without --notify it returns nil,
// which means the environment of deadline.
func (s *supervisor) listen() (env []string, err error) {
	if !s.alive.notices {
		return nil, nil
	}
	if s.listener, err = procgroup.Listen(); err != nil {
		return nil, err
	}
	return s.listener.Environ(os.Environ(), s.idle, s.end), nil
}

// finish removes the socket of --notify, if there is one.
func (s *supervisor) finish() {
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
}

func (s *supervisor) cannotStart(err error) ending {
	s.finish()
	if errors.Is(err, unix.EAGAIN) {
		s.say("fork system call failed: %s", reason(err))
		return ending{code: exitFailed}
	}
	s.say("failed to run command %s: %s", quote(s.command[0]), reason(err))
	if errors.Is(err, unix.ENOENT) {
		return ending{code: exitNotFound}
	}
	return ending{code: exitCannotExecute}
}

// watch is the function of each execution. It waits for the command, forwards signals to it, and makes its signs of
// life renew the idle limit of ctx. It returns nil when the command has ended, and errNextStage if a signal changes the
// limits.
func (s *supervisor) watch(ctx context.Context) error {
	if s.out != nil {
		beats := ctx
		if !s.alive.output {
			beats = context.Background()
		}
		s.out.start(beats)
	}
	if s.listener != nil {
		s.listener.Attend(ctx)
		defer notify.Relay(ctx)() // heartbeats also go to the socket in deadline's own environment, if there is one
	}
	if work := s.alive.cpu || s.alive.io; s.idle > 0 && (work || s.verbose) {
		o, err := procgroup.Observe(ctx, s.cmd.process, s.alive.activity())
		switch {
		case err == nil:
			defer func() {
				if s.verbose && ctx.Err() != nil {
					s.tree = o.Tree()
				}
				o.Stop()
			}()
		case work && !errors.Is(err, os.ErrProcessDone): // an error other than that the command has ended
			s.fail("option '--alive': %v", err)
		}
	}
	if sig, received := s.early.(syscall.Signal); received {
		if s.early = nil; s.pass(sig) {
			return errNextStage
		}
	}
	for !s.cmd.hasEnded() {
		select { // the end of the command wins over a limit and a signal, whatever select chooses
		case <-s.cmd.ended:
		case sig := <-s.signals:
			if s.cmd.hasEnded() {
				select { // for drain, for which any signal will do
				case s.signals <- sig:
				default:
				}
			} else if s.pass(sig.(syscall.Signal)) {
				return errNextStage
			}
		case <-s.continued:
			heartbeat.Beat(ctx)
			s.continuedAt = time.Now()
		case <-ctx.Done():
			if !s.cmd.hasEnded() {
				return context.Cause(ctx)
			}
		}
	}
	s.endedAt = time.Now()
	if s.out != nil {
		s.drain(ctx)
	}
	s.over = true
	return nil
}

// showTree writes, as one message, the processes of the command when the limit fired. It writes nothing without --idle
// and -v.
func (s *supervisor) showTree() {
	var lines []string
	for line := range strings.Lines(s.tree.String()) {
		lines = append(lines, "  "+strings.TrimRight(line, " \n"))
	}
	if len(lines) > 0 {
		s.say("%s", strings.Join(lines, "\n"+s.name+": "))
	}
	s.tree = procgroup.ProcessList{}
}

// pass forwards a signal that deadline has received. It returns whether the next execution needs other limits.
func (s *supervisor) pass(sig syscall.Signal) (changes bool) {
	if sig == unix.SIGALRM { // acts as the limit, because the limit of GNU timeout is a SIGALRM
		s.limited = true
		s.writeStacks()
		sig = s.next()
	}
	s.send(sig)
	return s.killGroup || s.killAfter > 0 && !s.killing
}

// send sends a signal to the command and to the process group. The command also gets it directly, because it may have
// left the group. A SIGKILL for the group is postponed until the output has been forwarded, if there is any.
func (s *supervisor) send(sig syscall.Signal) {
	if s.signalledAt.IsZero() {
		s.signalledAt = time.Now()
	}
	if s.verbose {
		s.say("sending signal %s to command %s", signalName(sig), quote(s.command[0]))
	}
	s.cmd.signal(sig)
	switch {
	case s.foreground:
	case sig == unix.SIGKILL && s.out != nil:
		s.killGroup = true
	case sig == unix.SIGKILL, sig == unix.SIGCONT:
		if sig == unix.SIGKILL {
			s.finish() // the signal ends deadline, too
		}
		signalGroup(sig)
	default:
		signalGroup(sig)
		// A stopped process could not act on the signal.
		s.cmd.signal(unix.SIGCONT)
		continueGroup()
	}
	moment("sent", s.cmd.process)
}

// ending returns how the program must end after the command has ended.
func (s *supervisor) ending() ending {
	if s.cmd.err != nil {
		s.say("error waiting for command: %s", reason(s.cmd.err))
		return ending{code: exitFailed}
	}
	status := s.cmd.state.Sys().(syscall.WaitStatus)
	e := ending{code: status.ExitStatus(), limited: s.limited}
	preserve := s.preserveStatus
	if status.Signaled() {
		sig := status.Signal()
		e.code = 128 + int(sig)
		if status.CoreDump() {
			s.say("the monitored command dumped core")
		}
		if !s.limited {
			e.signal = sig
		}
		// The exit code of a kill takes precedence over 124, as with GNU timeout.
		preserve = preserve || sig == unix.SIGKILL
	}
	if s.limited && !preserve {
		e.code = timeout.ExitTimeout
	}
	return e
}

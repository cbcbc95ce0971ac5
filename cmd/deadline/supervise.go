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
	// outputGrace is the time that the reader of the output has for the rest, from the signal that
	// stopped the command, unless -k is given.
	outputGrace = 5 * time.Second
	// outputLast is the least such time, from the end of the command.
	outputLast = time.Second
)

// A supervisor runs one command, as a sequence of executions of package timeout that all wait for that
// command. The first has the limits of the command line. After each signal, the next has the time that
// is left until the following signal.
type supervisor struct {
	options
	*reporter
	cmd       *command
	out       *output             // nil if the command has the streams of deadline
	listener  *procgroup.Listener // nil without --notify
	signals   chan os.Signal
	continued chan os.Signal // SIGCONT

	end         time.Time             // end of the total limit; zero means none
	continuedAt time.Time             // when SIGCONT was last noticed
	signalledAt time.Time             // when the command was first sent a signal; zero means never
	endedAt     time.Time             // when the end of the command was noticed
	killing     bool                  // the next limit sends SIGKILL
	killGroup   bool                  // the command was sent SIGKILL, and its group will be
	limited     bool                  // a limit was reached
	tree        procgroup.ProcessList // what the command was doing when the limit fired
	over        bool                  // the command has ended, and its output is passed on or abandoned
}

func supervise(o options, r *reporter) ending {
	if err := o.alive.activity().Check(); err != nil {
		r.say("option '--alive': %v", err)
		return ending{code: exitFailed}
	}
	launched, unwatch := withLauncher(context.Background())
	defer unwatch()
	if !o.foreground {
		// This fails if deadline leads a session, and then it has its own group already.
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
	cmd, err := start(o.command, env, streams, o.signal)
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
	if s.killGroup {
		signalGroup(unix.SIGKILL) // ends deadline too, unless it is process 1
		<-s.cmd.ended
	}
	return s.ending()
}

// listen makes the socket of --notify. It returns the environment of the command, or nil for the one of deadline.
func (s *supervisor) listen() (env []string, err error) {
	if !s.alive.notices {
		return nil, nil
	}
	if s.listener, err = procgroup.Listen(); err != nil {
		return nil, err
	}
	return s.listener.Environ(os.Environ(), s.idle, s.end), nil
}

// finish removes the socket.
func (s *supervisor) finish() {
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
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

// watch is the executed function: it waits for the command, passes signals on to it, and beats for its
// output.
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
		defer notify.Relay(ctx)() // the command no longer sees the socket that deadline itself was given
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
		case work && !errors.Is(err, os.ErrProcessDone): // a command that has ended needs no limit
			s.fail("option '--alive': %v", err)
		}
	}
	for {
		select {
		case <-s.cmd.ended:
			s.endedAt = time.Now()
			if s.out != nil {
				s.drain(ctx)
			}
			s.over = true
			return nil
		case sig := <-s.signals:
			if s.pass(sig.(syscall.Signal)) {
				return errNextStage
			}
		case <-s.continued:
			heartbeat.Beat(ctx)
			s.continuedAt = time.Now()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// showTree reports, in one message, what the command was doing. GNU timeout does not, so this is for
// --idle only.
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

// pass passes on a signal that deadline has received. It reports whether that changes the limits.
func (s *supervisor) pass(sig syscall.Signal) (changes bool) {
	if sig == unix.SIGALRM { // for GNU timeout, SIGALRM is the limit itself
		s.limited = true
		s.writeStacks()
		sig = s.next()
	}
	s.send(sig)
	return s.killGroup || s.killAfter > 0 && !s.killing
}

// send sends a signal to the command and to the process group. The command gets it directly too, in
// case it has left the group.
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
		s.killGroup = true // after the output has been passed on, since it ends deadline
	case sig == unix.SIGKILL, sig == unix.SIGCONT:
		if sig == unix.SIGKILL {
			s.finish() // SIGKILL ends deadline, too
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

// ending returns how the program ends, given how the command ended.
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
		// A kill is reported even where 124 would report the limit.
		preserve = preserve || sig == unix.SIGKILL
	}
	if s.limited && !preserve {
		e.code = timeout.ExitTimeout
	}
	return e
}

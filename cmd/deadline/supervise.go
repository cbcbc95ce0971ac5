//go:build unix

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	// outputGrace is how long whoever takes our output has for the rest, from the signal that
	// stopped the command, where -k does not say for how long the command may live on.
	outputGrace = 5 * time.Second
	// outputLast is the least of it, from the end of the command.
	outputLast = time.Second
	// killTime is how long the command may take to die of SIGKILL before we do.
	killTime = time.Second
)

// A supervisor runs one command. What it does is a sequence of executions of package
// timeout, all of which wait for the same command: the first under the limits of the
// command line; after the first signal that was sent, one under the time that is left
// until the next.
type supervisor struct {
	options
	*reporter
	cmd       *command
	out       *output // nil where the command has our own streams
	status    *status // nil where there is nothing to show
	signals   chan os.Signal
	continued chan os.Signal // SIGCONT

	end         time.Time             // when the total is up; zero is never
	continuedAt time.Time             // when SIGCONT was last noticed
	signalledAt time.Time             // when the command was first sent something; zero is never
	endedAt     time.Time             // when the end of the command was noticed
	killing     bool                  // the next limit sends KILL
	killGroup   bool                  // the command was sent KILL, and its group has to be
	limited     bool                  // a limit was reached
	tree        procgroup.ProcessList // what the command was doing when the limit fired
	over        bool                  // the command has ended, and its output is through or abandoned
}

// errNextStage ends an execution whose limits do not hold any more, because the kill has
// to be prepared.
var errNextStage = errors.New("a signal was passed on")

func supervise(o options, r *reporter) ending {
	if err := o.alive.activity().Check(); err != nil {
		r.say("option '--alive': %v", err)
		return ending{code: exitFailed}
	}
	before := unix.Getpgrp()
	if !o.foreground {
		// It fails where we lead a session, and then there is a group already.
		_ = unix.Setpgid(0, 0)
	}
	s := &supervisor{options: o, reporter: r, signals: make(chan os.Signal, maxSignal), continued: make(chan os.Signal, 1)}
	catch(s.signals, o.signal)
	catchContinue(s.continued)
	keepIgnored(o.signal)

	if messages, err := duplicate(2); err == nil {
		r.redirect(messages)
	}
	if o.status && isTerminal(os.Stderr) {
		s.status = newStatus(o, func() bool { return foreground(os.Stderr, before) })
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
	cmd, err := start(o.command, streams, o.signal)
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
		signalGroup(unix.SIGKILL) // our own end, too, unless we are process 1
		<-s.cmd.ended
	}
	return s.ending()
}

// finish takes the status off the terminal.
func (s *supervisor) finish() {
	if s.status != nil {
		s.status.stop()
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

// wait returns when the command has ended, or could not be killed.
func (s *supervisor) wait() {
	limits := timeout.Config{Total: s.total, Idle: s.idle, Grace: math.MaxInt64}
	if s.total > 0 {
		s.end = time.Now().Add(s.total)
	}
	for {
		begun := time.Now()
		err := timeout.Run(context.Background(), s.watch, limits)
		if s.over {
			return
		}
		var stop *timeout.Error
		if errors.As(err, &stop) {
			if s.killGroup {
				s.abandon()
				return
			}
			if stop.Kind == timeout.KindIdle && s.wasStopped(begun, stop) {
				limits.Total = s.untilEnd()
				continue
			}
			s.limited = true
			if stop.Kind == timeout.KindIdle && s.verbose {
				s.say("no %v from command %s for %v", s.alive, quote(s.command[0]), stop.Limit)
			}
			s.send(s.next())
			s.showTree() // which must not hold up the signal
		}
		limits = s.following(stop)
	}
}

// wasStopped reports whether an idle limit fired only because nobody could run, as between
// Ctrl-Z and fg. SIGCONT is a beat, but the timer that was overdue may be faster.
func (s *supervisor) wasStopped(begun time.Time, stop *timeout.Error) bool {
	const late, soon = 10 * time.Millisecond, 100 * time.Millisecond
	fired := begun.Add(stop.Elapsed)
	if s.continuedAt.After(fired.Add(-soon)) {
		return true
	}
	if due := fired.Add(stop.Limit - stop.SinceBeat); time.Since(due) < late {
		return false
	}
	select {
	case <-s.continued:
		s.runAgain()
		return true
	case <-time.After(soon):
		return false
	}
}

// runAgain is for when we have been stopped and continued.
func (s *supervisor) runAgain() {
	s.continuedAt = time.Now()
	if s.status != nil {
		s.status.moved()
	}
}

// next is the signal that a limit sends.
func (s *supervisor) next() sysSignal {
	if s.killing {
		return unix.SIGKILL
	}
	return s.signal
}

// untilEnd is the total limit that is left; 0 is none.
func (s *supervisor) untilEnd() time.Duration {
	if s.end.IsZero() {
		return 0
	}
	return max(time.Until(s.end), 1)
}

// following returns the limits of the execution after one that ended with stop: the kill
// has to come, if one is wanted and not sent yet, and the total still holds. What follows
// a signal has no idle limit.
func (s *supervisor) following(stop *timeout.Error) timeout.Config {
	if s.killGroup {
		return timeout.Config{Total: killTime, Grace: math.MaxInt64}
	}
	if stop != nil && stop.Kind == timeout.KindTotal && !time.Now().Before(s.end) {
		s.end = time.Time{} // that was it
	}
	next := timeout.Config{Total: s.untilEnd(), Grace: math.MaxInt64}
	if s.killAfter > 0 && !s.killing {
		s.killing = true
		if next.Total == 0 || s.killAfter < next.Total {
			next.Total = s.killAfter
		}
	}
	return next
}

// watch is the function that is executed: it waits for the command, passes signals on
// to it, and takes its output for its heartbeat.
func (s *supervisor) watch(ctx context.Context) error {
	if s.out != nil {
		beats := ctx
		if !s.alive.output {
			beats = context.Background()
		}
		s.out.start(beats)
	}
	if s.status != nil {
		s.status.start(ctx)
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
		case work && !errors.Is(err, os.ErrProcessDone): // which was quick, and needs no limit
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
			s.runAgain()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// showTree says what the command was doing, in one message. GNU timeout does not, so it is
// for --idle only.
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

// pass passes a signal on that we have received. It reports whether that changes the
// limits.
func (s *supervisor) pass(sig sysSignal) (changes bool) {
	if sig == unix.SIGALRM { // to GNU timeout, this is the limit itself
		s.limited = true
		sig = s.next()
	}
	s.send(sig)
	return s.killGroup || s.killAfter > 0 && !s.killing
}

// send signals the command, and everything in our group. The command gets it directly
// too, in case it has left the group.
func (s *supervisor) send(sig sysSignal) {
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
		s.killGroup = true // once the output is through: it is our own end
	case sig == unix.SIGKILL, sig == unix.SIGCONT:
		signalGroup(sig)
	default:
		signalGroup(sig)
		// What is stopped could not act on it.
		s.cmd.signal(unix.SIGCONT)
		continueGroup()
	}
}

// ending says how the program ends, from how the command did.
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
		// This much has to be known even where 124 says that a limit was reached.
		preserve = preserve || sig == unix.SIGKILL
	}
	if s.limited && !preserve {
		e.code = timeout.ExitTimeout
	}
	return e
}

package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// Drain reads the available output of a command that has ended, and waits until all streams have ended or failed, but
// not beyond until. It reports whether one has done neither, because another process still has its writing end open.
// Finish returns the error of a stream that cannot be read.
//
// To find out, Drain reads the pipes itself, and does not rely on the collectors: on a busy machine they may not have
// run since the command wrote, or may be waiting for a writer. If no process has outlived the command, the first read
// finds the end, and Drain does not wait.
//
// A child that was forked to start another command may hold a stream for a moment; see starts. Before Drain returns
// true it waits for such children, but not beyond latest, and reads again.
func (c *Capture) Drain(until, latest time.Time) (held bool) {
	c.closeTerminal()
	for !c.rest() {
		if !time.Now().Before(until) {
			c.start.await(latest)
			return !c.rest()
		}
		next := until
		if restEvery > 0 {
			next = time.Now().Add(min(restEvery, time.Until(until)))
		}
		if patient.Wait(c.done, next) {
			break
		}
	}
	return false
}

// LongestSilence returns the longest time without output between Config.Begun and end.
func (c *Capture) LongestSilence(end time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.longest, end.Sub(c.last))
}

// An End describes how a capture ended.
type End struct {
	// Held reports whether a stream had neither ended nor failed when it was read for the last time, so that output of
	// a process that still has it open may be missing.
	Held bool
	// Unwritten is the number of bytes that the caller's writers did not get, and Skipped the number of bytes that
	// Config.Output did not get.
	Unwritten, Skipped int64
	// Err joins the errors of reading the output, of the caller's writers, and of the input. Callback is the error if
	// Config.Output panicked or called runtime.Goexit.
	Err, Callback error
	// Spill is the error of Config.Spill, or says that it did not accept all output in time.
	Spill error
}

// Finish reads the rest of the output and closes the streams. It waits until the caller's writers and Config.Spill have
// accepted all output, until written, or until ctx is done. Then it waits until the caller's reader and callback have
// returned, or until returned. It may wait some times closeTime longer.
func (c *Capture) Finish(ctx context.Context, written, returned time.Time) End {
	end := End{Held: !c.rest()}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.closeReaders()
	close(c.giveUp)
	left := make(chan struct{})
	go func() {
		defer close(left)
		c.collectors.Wait()
	}()
	patient.Wait(left, time.Now().Add(closeTime)) // a collector goes on if the system cannot interrupt its read
	var errs []error
	c.mu.Lock()
	c.closed = true // drops what such a collector still reads, which would not be in the totals below
	for i := range c.streams {
		s := &c.streams[i]
		if s.err != nil {
			errs = append(errs, fmt.Errorf("procgroup: reading the command's output: %w", s.err))
		}
		if !s.ended {
			c.deliver(s, nil, true)
		}
	}
	c.mu.Unlock()
	if c.live != nil {
		c.live.close()
	}
	all := c.sinks
	if c.spill != nil {
		all = append(all, c.spill)
	}
	for _, s := range all { // end all of them first, since awaitSinks waits for them together
		s.end()
	}
	awaitSinks(ctx, all, written)
	for _, s := range c.sinks {
		n, err := s.finish()
		end.Unwritten += n
		errs = append(errs, err)
	}
	if c.spill != nil {
		_, end.Spill = c.spill.finish()
	}
	if c.in != nil {
		errs = append(errs, c.in.finish(returned))
	}
	if c.live != nil {
		end.Skipped, end.Callback = c.live.finish(returned)
	}
	end.Err = errors.Join(errs...)
	return end
}

// awaitSinks waits until all sinks are done, but not beyond until or the end of ctx. Even after that it waits
// closeTime, for all sinks together, so that the goroutine of a writer that does not block can finish.
func awaitSinks(ctx context.Context, all []*sink, until time.Time) {
	timed, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var moment time.Time
	for _, s := range all {
		select { // a sink that is done wins: Wait looks at it first
		case <-s.done:
			continue
		case <-timed.Done():
		}
		if moment.IsZero() {
			moment = time.Now().Add(closeTime)
		}
		patient.Wait(s.done, moment)
	}
}

// Kept returns the output that was kept. Call it after Finish. If stopped is true, because the command was stopped, or
// if a stream was closed before its end, an unfinished character at the end counts as cut.
func (c *Capture) Kept(stopped bool) (stdout, stderr, combined kept.Output) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var open [2]bool
	for i := range c.streams {
		s := &c.streams[i]
		open[i] = stopped || !s.ended || s.hungUp
	}
	return c.record.Outputs(open, c.shown())
}

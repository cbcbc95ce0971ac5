package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
)

// Drain waits for both streams to end, but not beyond until. Call it once the command has ended. It reads the
// available output, and reports whether a stream has not ended because another process still holds it.
//
// The pipe decides that, not the time since the last read: on a busy machine the collectors
// may not have run since the command wrote, or may be waiting for a writer. The first look is
// immediate, because nothing holds the streams if no process has outlived the command.
//
// A command that is being started may also hold a stream for a moment; see starts. Drain waits
// for such commands, but not beyond latest, before it reports that a stream is held.
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
		if wait(c.done, next) {
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
	// Held reports whether another process still held a stream, and may have written to it after it
	// was read for the last time.
	Held bool
	// Unwritten is the number of bytes that the caller's writers did not get, and Skipped the
	// number of bytes that the callback did not get.
	Unwritten, Skipped int64
	// Err is the error of reading the output, or of the caller's reader and writers. Callback is
	// the error of the callback.
	Err, Callback error
	// Spill is the reason why Config.Spill did not get all of the output, or nil.
	Spill error
}

// Finish reads the rest of the output and closes the streams. It waits for the caller's writers to
// take the rest, until written or until ctx is done, and for the caller's reader and callback to
// return, until returned.
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
	wait(left, time.Now().Add(closeTime)) // collectors remain if the system cannot interrupt a read
	var errs []error
	c.mu.Lock()
	c.closed = true // what such a collector still reads is dropped: nothing is counted after the figures are taken
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
	for _, s := range all { // all before the wait, which is for them together
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

// awaitSinks waits for the sinks until the given time, or until ctx is done. A writer that takes the rest at once
// gets it even then: its goroutine needs a moment for that.
func awaitSinks(ctx context.Context, all []*sink, until time.Time) {
	timed, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var moment time.Time
	for _, s := range all {
		select {
		case <-s.done:
			continue
		case <-timed.Done():
		}
		if moment.IsZero() {
			moment = time.Now().Add(closeTime)
		}
		wait(s.done, moment)
	}
}

// Kept returns the output that was kept. Call it after Finish. stopped says that the command was
// stopped: then an unfinished character at the end of a stream counts as cut.
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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/job"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// look is how often a call that waits tells its client how the command stands.
const look = time.Second

// quiet is how many looks a command with a terminal may be silent in the middle of a line. Then the call returns
// without a claim: sudo and editors ask in ways that the system does not show.
const quiet = 5

// A wish is what a call waits for, besides the end of the command.
type wish struct {
	from   int64 // position after which output is new
	match  *regexp.Regexp
	output bool // any output

	signalled bool // not a wait for input, which began before the signal
}

// watch waits until the command has ended, waits for input or has done what the call wishes, and for no longer than d.
// A command that only seems to wait for input must have been silent for a whole look.
func (c *client) watch(ctx context.Context, j *job.Job, d time.Duration, w wish) (matched bool) {
	begun := time.Now()
	ctx, stop := context.WithDeadline(ctx, begun.Add(d))
	defer stop()
	until := job.Until{From: w.from, Input: !w.signalled, Match: w.match, Output: w.output}
	end, silent := w.from, 0
	for {
		step, cancel := context.WithTimeout(ctx, look)
		why := j.Wait(step, until)
		cancel()
		if why != job.WakeCaller || ctx.Err() != nil {
			return why == job.WakeMatch
		}
		tail, next, unfinished := tail(j)
		s := j.Status()
		if silent++; next != end {
			silent = 0
		}
		if asks := s.State == job.Waiting || unfinished && silent >= quiet && c.account(j.ID).tty; asks && silent > 0 && !w.signalled {
			return false
		}
		end = next
		message := tail
		if s.State == job.Waiting {
			message = s.Input.String()
		}
		progress.Report(ctx, progress.Update{Progress: time.Since(begun).Seconds(), Message: message})
	}
}

// tail returns the last line of the output that has anything on it, the position of the end, and whether the last line
// is not finished.
func tail(j *job.Job) (line string, end int64, unfinished bool) {
	const most = 200
	end = j.Read(math.MaxInt64, 0).Next
	data := string(j.ReadText(max(end-4*most, 0), 0).Data)
	unfinished = data != "" && !strings.HasSuffix(data, "\n")
	text := strings.TrimSpace(data)
	line = text[strings.LastIndexByte(text, '\n')+1:]
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line, end, unfinished
}

// cancelled reports whether the client has cancelled its call, which a client that has gone does not.
func cancelled(ctx context.Context) bool {
	var by *toolcall.CancelledError
	return errors.As(context.Cause(ctx), &by)
}

// pattern compiles what the client waits for. It returns nil for an empty text.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := job.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("until: %w", err)
	}
	return re, nil
}

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

// look is the interval at which a call that waits checks the command and reports progress to its client.
const look = time.Second

// quiet is the number of looks for which a command with a terminal may be silent in the middle of a line before the
// call returns. Such a command may wait for input in a way that the system cannot detect, as sudo and editors do.
const quiet = 5

// A wish describes the events that end the wait of a call, besides the end of the command.
type wish struct {
	from   int64 // position after which output is new
	match  *regexp.Regexp
	output bool // any output

	signalled bool // not a wait for input, which began before the signal
}

// watch waits up to most until the command has ended, waits for input, or an event of w has happened. It returns whether
// the output has matched w.match. If it is not certain that the command waits for input, the command must also have
// been silent for a whole look. watch reports progress meanwhile.
func (d *desk) watch(ctx context.Context, j *job.Job, most time.Duration, w wish) (matched bool) {
	begun := time.Now()
	ctx, stop := context.WithDeadline(ctx, begun.Add(most))
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
		if asks := s.State == job.Waiting || unfinished && silent >= quiet && d.account(j.ID).tty; asks && silent > 0 && !w.signalled {
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

// tail returns the last line of the output that is not blank, the position of the end of the output, and whether the
// output ends without a newline.
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

// cancelled reports whether the client has cancelled its call. It returns false if the client has disconnected.
func cancelled(ctx context.Context) bool {
	var by *toolcall.CancelledError
	return errors.As(context.Cause(ctx), &by)
}

// pattern compiles the regular expression of a client. It returns nil for an empty text.
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

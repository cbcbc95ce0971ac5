package main

import (
	"errors"

	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
)

// sendBeat sends a heartbeat to the socket in NOTIFY_SOCKET, such as the socket of deadline --notify, and returns the
// exit code. If the variable is not set, sendBeat returns 0, so that a script also runs without deadline.
func sendBeat(o options, r *reporter) int {
	states := []string{"WATCHDOG=1"}
	for _, detail := range o.command {
		states = append(states, "STATUS="+oneLine(detail))
	}
	switch err := notify.Send(states...); {
	case errors.Is(err, notify.ErrNoSupervisor):
		if o.verbose {
			r.say("nobody listens: NOTIFY_SOCKET is not set")
		}
	case err != nil:
		r.say("cannot send a heartbeat: %v", err)
		return exitFailed
	}
	return 0
}

// oneLine returns the first 2048 bytes of a detail, with newlines replaced by spaces.
func oneLine(detail string) string {
	const most = 2048
	b := []byte(detail[:min(len(detail), most)])
	for i, c := range b {
		if c == '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

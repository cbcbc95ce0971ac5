package calls

import (
	"errors"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What the error of an idle limit advises the author of a tool, and the text that replaces it: the reader of an
// answer of the proxy cannot change the server.
const (
	advice  = "Tool should call heartbeat() during long work."
	instead = "The server has shown no sign of life."
)

// words returns what an answer says about err; see [toolcall.Text].
func words(err error, partial string) string {
	return inWords(err, toolcall.Text(err, partial))
}

// inWords returns text, which has the message of err, with the advice replaced.
func inWords(err error, text string) string {
	if errors.Is(err, timeout.ErrIdle) {
		return strings.Replace(text, advice, instead, 1)
	}
	return text
}

// An outcome is a [toolcall.Outcome] for hosts, some of which show it to the model: what a model can use, in
// whole milliseconds.
type outcome struct {
	Kind     string `json:"kind"`
	ExitCode int    `json:"exitCode"`
	Cause    string `json:"cause,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Limit    int64  `json:"limitMs"`
	Total    int64  `json:"totalMs"`
	Idle     int64  `json:"idleMs"`
	Elapsed  int64  `json:"elapsedMs"`
}

// outcomeOf returns the outcome of a call that was stopped, and false if err is not about one.
func outcomeOf(err error) (outcome, bool) {
	whole, stopped := toolcall.OutcomeOf(err)
	var e *timeout.Error
	if !stopped || !errors.As(err, &e) {
		return outcome{}, false
	}
	ms := func(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }
	return outcome{
		Kind: whole.Kind, ExitCode: whole.ExitCode, Cause: whole.Cause, Reason: whole.Reason,
		Limit: ms(e.Limit), Total: ms(e.Limits.Total), Idle: ms(e.Limits.Idle), Elapsed: ms(e.Elapsed),
	}, true
}

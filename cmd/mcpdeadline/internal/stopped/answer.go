package stopped

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Answer returns the answer to the call with the given id, which was stopped with err. The answer contains the text
// about err, followed by the content of sent, the server's answer, which may be nil. version is the protocol version in
// the request, or "".
func Answer(id json.RawMessage, version string, sent *jsonrpc.Message, err error) *jsonrpc.Message {
	text := Text(err, "")
	fields := make(map[string]json.RawMessage)
	var content []json.RawMessage
	meta := make(map[string]json.RawMessage)
	if sent != nil && sent.Error != nil {
		var e struct{ Message string }
		_ = adapter.Unmarshal(sent.Error, &e)
		text = Text(err, e.Message)
	} else if sent != nil && adapter.Unmarshal(sent.Result, &fields) == nil {
		_ = adapter.Unmarshal(fields["content"], &content)
		_ = adapter.Unmarshal(fields["_meta"], &meta)
	}
	if fields["inputRequests"] != nil || fields["task"] != nil || fields["taskId"] != nil { // too late
		clear(fields)
		content = nil
	}
	fields["isError"] = json.RawMessage("true")
	fields["content"] = jsonrpc.Encode(append([]json.RawMessage{jsonrpc.Encode(map[string]string{"type": "text", "text": text})}, content...))
	if outcome, ok := outcomeOf(err); ok {
		meta[toolcall.OutcomeKey] = jsonrpc.Encode(outcome)
	}
	if len(meta) > 0 {
		fields["_meta"] = jsonrpc.Encode(meta)
	}
	if version >= "2026-07-28" {
		fields["resultType"] = json.RawMessage(`"complete"`)
	}
	answer := jsonrpc.Result(id, fields)
	answer.About = string(id)
	return answer
}

// An outcome has the fields of a [toolcall.Outcome] that are useful to a model, in whole milliseconds, because some
// hosts show the _meta of a result to the model.
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

// outcomeOf returns the outcome of the stopped execution that err reports, and false if err contains no
// [*timeout.Error].
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

package adapter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// methods returns the tasks/* methods of protocol version 2025-11-25, or of 2026-07-28 and later. For any other
// version it returns nil.
func methods(version string) []string {
	switch {
	case version >= string(task.Extension):
		return []string{"tasks/get", "tasks/update", "tasks/cancel"}
	case version == string(task.Legacy):
		return []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"}
	}
	return nil
}

// handleFields returns the fields of the result that answers a call that has become this task or continuation; see
// [task.Form].
func handleFields(r *task.Record) map[string]any {
	switch r.Form {
	case task.Legacy:
		return map[string]any{"task": fieldsOf(r, task.Legacy)}
	case task.Continued:
		return still(r, 1, r.Soft)
	}
	fields := handleOf(r, task.Extension)
	fields["resultType"] = "task"
	return fields
}

// maxFailure is the most bytes of a result's text that a status message repeats.
const maxFailure = 16 << 10

// handleOf returns the fields of a handle, which are those of a Task object of the protocol.
func handleOf(r *task.Record, f task.Form) map[string]any {
	fields := map[string]any{
		"taskId":        r.ID,
		"status":        r.Status,
		"createdAt":     timestamp(r.Created),
		"lastUpdatedAt": timestamp(r.Updated),
	}
	// How long a running task will be kept is not known, and a client may take a number for the time limit of the
	// task. So only a client that has asked for a number gets it, until that time is over.
	var ttl any
	switch {
	case r.Status.Final():
		ttl = r.Expires.Sub(r.Created).Milliseconds()
	case time.Since(r.Created) < r.TTL:
		ttl = r.TTL.Milliseconds()
	}
	text := message(r)
	if f == task.Legacy {
		fields["status"] = legacyStatus(r)
		fields["ttl"], fields["pollInterval"] = ttl, r.Poll.Milliseconds()
		if r.Failure != "" {
			text = r.Failure
		}
	} else {
		fields["ttlMs"], fields["pollIntervalMs"] = ttl, r.Poll.Milliseconds()
	}
	if text != "" {
		fields["statusMessage"] = text
	}
	return fields
}

// fieldsOf returns the fields of the answer to tasks/get.
func fieldsOf(r *task.Record, f task.Form) map[string]any {
	fields := handleOf(r, f)
	if f == task.Legacy {
		return fields
	}
	fields["resultType"] = "complete"
	switch {
	case r.Status == task.InputRequired:
		questions := r.Questions
		if questions == nil {
			questions = map[string]json.RawMessage{}
		}
		fields["inputRequests"] = questions
	case r.Status == task.Completed && r.Answer != nil: // the extension has no result of a cancelled task
		fields["result"] = complete(r.Answer.Result)
	case r.Status == task.Failed && r.Answer != nil:
		fields["error"] = r.Answer.Error
	}
	return fields
}

// complete returns a result with a resultType.
func complete(result json.RawMessage) any {
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil || fields == nil || fields["resultType"] != nil {
		return result
	}
	fields["resultType"] = json.RawMessage(`"complete"`)
	return fields
}

// resultOf returns the fields of the answer to tasks/result.
func resultOf(r *task.Record) (map[string]any, error) {
	fields, err := answerOf(r)
	if err != nil {
		return nil, err
	}
	meta := map[string]any{task.RelatedKey: map[string]any{"taskId": r.ID}}
	if old, ok := fields["_meta"].(json.RawMessage); ok {
		var own map[string]json.RawMessage
		_ = json.Unmarshal(old, &own)
		for key, value := range own {
			if key != task.RelatedKey {
				meta[key] = value
			}
		}
	}
	fields["_meta"] = meta
	return fields, nil
}

// answerOf returns the fields of the result that the call has ended with, or the error. If there is neither, because
// the task was cancelled, the error says so.
func answerOf(r *task.Record) (map[string]any, error) {
	switch {
	case r.Answer == nil:
		return nil, &task.Error{Code: codeInternal, Message: task.ErrCancelled.Error()}
	case r.Answer.Error != nil:
		return nil, r.Answer.Error
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(r.Answer.Result, &raw); err != nil {
		return nil, &task.Error{Code: codeInternal, Message: "the result is not a JSON object: " + err.Error()}
	}
	fields := make(map[string]any, len(raw)+1)
	for key, value := range raw {
		fields[key] = value
	}
	return fields, nil
}

// message returns the status message.
func message(r *task.Record) string {
	if r.Status == task.Failed || r.Status == task.Cancelled {
		return r.Message
	}
	return update(r).String()
}

// update returns how far the tool had come.
func update(r *task.Record) progress.Update {
	return progress.Update{Progress: r.Progress, Total: r.Total, Message: r.Message}
}

// legacyStatus returns the status for protocol 2025-11-25, in which a result whose isError is true is a failure. In
// the extension only a JSON-RPC error is a failure.
func legacyStatus(r *task.Record) task.Status {
	if r.IsError { // r.Status is Completed, because the error of a tool is a result
		return task.Failed
	}
	return r.Status
}

// readFailure sets IsError and Failure of a record from its result.
func readFailure(r *task.Record) {
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if exact.Unmarshal(r.Answer.Result, &result) != nil || !result.IsError {
		return
	}
	var texts []string
	for _, c := range result.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	r.IsError, r.Failure = true, cut(strings.Join(texts, "\n"))
}

// cut cuts the text of a failure for a status message.
func cut(text string) string {
	if len(text) <= maxFailure {
		return text
	}
	return strings.ToValidUTF8(text[:maxFailure], "") + "..."
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// still returns the fields of a result that says that the call is still running. wait is the number of the next wait.
func still(r *task.Record, wait uint64, elapsed time.Duration) map[string]any {
	next := r.ID
	if wait > 1 {
		next += "." + strconv.FormatUint(wait, 10)
	}
	id, _ := json.Marshal(next)
	text := "Still running after " + seconds(elapsed) + "s."
	if at := message(r); at != "" {
		text += "\n" + at
	}
	text += fmt.Sprintf("\nCall %s with {\"id\": %s} to wait for the result.", r.WaitTool, id)
	meta := map[string]any{"id": next, "tool": r.WaitTool, "elapsedMs": float64(elapsed) / float64(time.Millisecond)}
	if r.Message != "" {
		meta["message"] = r.Message
	}
	if r.Progress != 0 {
		meta["progress"] = r.Progress
	}
	if r.Total > 0 {
		meta["total"] = r.Total
	}
	fields := map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"_meta":   map[string]any{task.ContinuationKey: meta},
	}
	if r.Version >= string(task.Extension) {
		fields["resultType"] = "complete"
	}
	return fields
}

// seconds writes a duration in seconds, in the shortest decimal form.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func failed(text string) map[string]any {
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"isError": true,
	}
}

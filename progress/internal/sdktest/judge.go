package sdktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

// judge compares the observations of a call with the guarantees.
func (run *randomRun) judge(t *testing.T, p *Peer, n int, c *randomCall) {
	if c.x == nil {
		return
	}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("call %d: %s\n  begun %v, tool %v, ended %v (%v), given up %v, answer %v", n, fmt.Sprintf(format, args...), c.begun, c.tool, c.ended, c.cause, c.given, c.answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.called > 1 {
		fail("the tool was called %d times", c.called)
	}
	// Guarantee 4 of toolcall: progress increases, belongs to the call, and ends before its answer, except for a task
	// of protocol Old.
	notes := p.progress(c.token)
	if increases(t, notes); c.token == nil && len(notes) > 0 {
		fail("progress without a token")
	}
	id := taskOf(c.answer)
	for _, note := range notes {
		if c.answer != nil && note.At > c.answer.At && (id == nil || p.Version == New) && metaOf(c.answer.Result, task.ContinuationKey) == nil {
			fail("progress after the answer: %v", &note)
		}
	}
	lost := run.cut > 0 && (c.answer == nil || c.answer.At >= run.cut)
	down := run.shutdown && (c.answer == nil || c.answer.At >= time.Minute)
	// A call has an answer unless the client has cancelled it, or the connection or the server has ended.
	if c.answer == nil {
		if c.given == 0 && !lost && !down {
			fail("no answer")
		}
		// The tool must have been stopped at once. In a session over HTTP it runs on, because the client may reconnect.
		at := c.given
		if at == 0 {
			at = run.cut
		}
		if c.called > 0 && at > 0 && c.ended > at && !down && c.tool <= at && !(lost && p.Name == "HTTP "+Old) {
			fail("stopped after %v", c.ended-at)
		}
		return
	}
	after, text, exact := c.model(run.limits)
	if c.given > 0 || lost || down || !exact {
		return
	}
	soft := run.soft
	if run.tasks && (p.Version == New || c.asTask) && run.outage[1] == 0 && !(p.Name == "SSE" && id == nil) {
		if c.asTask {
			soft = 0
		}
		if id == nil && after > soft {
			fail("no handle, and the call ends after %v", after)
		}
		if id != nil {
			if at := c.answer.At - c.begun; at != soft || !c.asTask && after < soft {
				fail("a handle after %v, soft limit %v, end %v", at, soft, after)
			}
			run.judgeTask(c, text, fail)
			return
		}
	}
	if id != nil {
		return
	}
	took := c.answer.At - c.tool
	if metaOf(c.answer.Result, task.ContinuationKey) != nil {
		goOn := run.goOn
		if run.soft > 0 {
			goOn = min(goOn, run.soft)
		}
		if at := c.answer.At - c.begun; run.goOn == 0 || at < goOn || at > goOn+5*ms || after < goOn-(c.tool-c.begun) {
			fail("continued after %v", at)
		}
		return
	}
	if c.answer.Error != nil {
		fail("an error")
	} else if got := texts(c.answer.Result); len(got) == 0 || !strings.HasPrefix(got[0], text) || (c.answer.Result["isError"] == true) == (text == "done") {
		fail("want %q", text)
	} else if took < after || took > after+200*ms { // a notification that is being sent may delay the answer
		fail("answered after %v, want %v", took, after)
	}
}

// judgeTask compares the statuses and the result of a task with the guarantees. text is the beginning of the result
// that the model predicts.
func (run *randomRun) judgeTask(c *randomCall, text string, fail func(string, ...any)) {
	final := any(nil)
	for _, status := range c.statuses {
		if final != nil && status != final {
			fail("task 3: %v after %v", status, final)
		}
		if status == "completed" || status == "failed" || status == "cancelled" {
			final = status
		}
	}
	if final == "cancelled" {
		if c.quit == 0 {
			fail("cancelled by nobody")
		}
		return
	}
	if got := texts(c.result); c.result != nil && (len(got) == 0 || !strings.HasPrefix(got[0], text)) && c.quit == 0 {
		data, _ := json.Marshal(c.result)
		fail("the task's result is %s, want %q", data, text)
	}
}

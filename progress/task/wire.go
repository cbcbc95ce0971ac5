package task

import (
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// ExtensionID is the extension of 2026-07-28, in the capabilities of client and server. Its value
// is an empty object: clients take any other for a refusal.
const ExtensionID = "io.modelcontextprotocol/tasks"

// RelatedKey is where the _meta of what belongs to a Legacy task, such as a question to its
// client, has {"taskId": id}.
const RelatedKey = "io.modelcontextprotocol/related-task"

// Methods returns the tasks/* methods of a form.
func Methods(f Form) []string { panic("not yet") }

// LegacyCapability is the value of "tasks" in the server's capabilities, for the result of
// initialize where the protocol is 2025-11-25. list is whether callers can be told apart.
func LegacyCapability(list bool) map[string]any { panic("not yet") }

// LegacySupport is the value of "taskSupport" in the "execution" of a tool in tools/list, for
// protocol 2025-11-25: "optional" for a tool with a soft limit, "required" for one that is
// TaskOnly, and "" for any other, which means to leave it out.
func LegacySupport(soft time.Duration, taskOnly bool) string { panic("not yet") }

// Handle returns the fields of the result that a call is answered with which has become this task
// or continuation, see Form.
func (r *Record) Handle() map[string]any { panic("not yet") }

// Lost returns the record as that of a task whose process is gone: failed, with an error that says
// so. It is for a [Store].
func (r Record) Lost(now time.Time) Record { panic("not yet") }

var _ timeout.Config

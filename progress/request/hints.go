package request

import "sync"

// Hints records which tools of one server have a ReadOnlyHint or an IdempotentHint, so that a call may be repeated. The
// zero Hints is ready to use. It is safe for concurrent use.
type Hints struct {
	mu         sync.Mutex
	repeatable map[string]bool
}

// Tool records the hints of a tool, from the result of tools/list, in place of earlier hints of that tool. At most
// 10 000 tools with a hint are remembered; beyond that, Tool forgets arbitrary ones.
func (h *Hints) Tool(name string, readOnly, idempotent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if readOnly || idempotent {
		remember(&h.repeatable, name, true)
	} else {
		delete(h.repeatable, name)
	}
}

// Forget forgets all tools, because the list of tools of the server has changed. No call of a tool may then be repeated
// until [Hints.Tool] records that tool again.
func (h *Hints) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repeatable = nil
}

// Repeatable reports whether a call of the tool may be repeated, because a hint of the tool is recorded. It returns
// false for an unknown tool.
func (h *Hints) Repeatable(tool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repeatable[tool]
}

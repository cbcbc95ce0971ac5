package request

import "sync"

// Hints remembers which tools of one server say that a call may be repeated, because they only read or are
// idempotent. The zero Hints is ready to use, and safe for concurrent use.
type Hints struct {
	mu         sync.Mutex
	repeatable map[string]bool
}

// Tool takes the hints of a tool from the result of tools/list. At most 10 000 tools that may be
// repeated are remembered; beyond that, some are forgotten.
func (h *Hints) Tool(name string, readOnly, idempotent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !readOnly && !idempotent {
		delete(h.repeatable, name)
		return
	}
	if h.repeatable == nil {
		h.repeatable = make(map[string]bool)
	}
	if len(h.repeatable) >= maxDeclarations {
		for any := range h.repeatable {
			delete(h.repeatable, any)
			break
		}
	}
	h.repeatable[name] = true
}

// Forget forgets all tools, for a server whose tools have changed: none may be repeated until it has
// been listed again.
func (h *Hints) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repeatable = nil
}

// Repeatable reports whether a call of the tool may be repeated. It returns false for a tool that has not
// been listed.
func (h *Hints) Repeatable(tool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repeatable[tool]
}

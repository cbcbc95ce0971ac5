package calls

import (
	"encoding/json"
	"maps"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A memory holds the state of the session: the messages that must be sent again to a new run of the server, and the
// capabilities of the server.
type memory struct {
	initialize  *jsonrpc.Message            // the host's request
	initialized *jsonrpc.Message            // the notification after it
	lists       map[string]bool             // lists that the server has, by its capabilities
	version     string                      // of the protocol
	ownTasks    bool                        // the server supports tasks itself
	level       json.RawMessage             // params of logging/setLevel
	subscribed  map[string]*jsonrpc.Message // resources/subscribe requests, by their params
}

// remember records m if it is a message of the host that a new run must be sent again. The caller holds s.mu, and must
// queue or send m before it releases s.mu, so that replay can see whether m is in the queue.
func (all *memory) remember(m *jsonrpc.Message) {
	switch m.Method {
	case "initialize":
		*all = memory{initialize: m, subscribed: make(map[string]*jsonrpc.Message)}
	case "notifications/initialized":
		all.initialized = m
	case "logging/setLevel":
		all.level = m.Params
	case "resources/subscribe":
		if all.subscribed != nil {
			all.subscribed[string(m.Params)] = m
		}
	case "resources/unsubscribe":
		delete(all.subscribed, string(m.Params))
	}
}

// replay returns the messages that must be sent again to a new run, without those in waiting, which the run will be
// sent from the queue. The caller holds s.mu.
func (all *memory) replay(waiting []*jsonrpc.Message) memory {
	m := *all
	m.subscribed = maps.Clone(m.subscribed)
	for _, w := range waiting {
		switch w.Method {
		case "initialize":
			m.initialize, m.initialized = nil, nil
		case "notifications/initialized":
			m.initialized = nil
		case "logging/setLevel":
			m.level = nil
		case "resources/subscribe":
			delete(m.subscribed, string(w.Params))
		}
	}
	return m
}

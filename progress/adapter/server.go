package adapter

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/hosts"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Server is what a server with [Options] has for its calls. Make one with [NewServer]. It is safe for concurrent use.
type Server struct {
	Options // a copy, with Tasks where there is a Continuation, and with that where there are Hosts

	Calls   toolcall.Settings // of tools
	Waiting toolcall.Settings // of the wait tool, which has limits of its own: what it waits for has others
	Offered bool              // tasks are, and not only continuations
}

// NewServer returns what the options say of a server, which later changes of o do not reach. Options that contradict
// themselves are refused.
func NewServer(o *Options) *Server {
	if o == nil {
		o = new(Options)
	}
	if o.Methods != nil && !o.Declare {
		refuse("Methods", "set without Declare", "Declare beside it")
	}
	if o.Principal != nil && o.Tasks == nil && o.Continuation == nil && !o.Hosts && !o.Idempotency {
		refuse("Principal", "set alone", "Tasks, Continuation, Hosts or Idempotency beside it")
	}
	s := &Server{Options: *o, Calls: o.calls(), Offered: o.Tasks != nil}
	s.Methods = maps.Clone(o.Methods)
	if o.Continuation != nil || o.Hosts {
		s.Continuation = new(Continuation)
		if o.Continuation != nil {
			*s.Continuation = *o.Continuation
		}
		if s.Tasks == nil {
			s.Tasks = new(task.Tasks)
		}
	}
	if o.Requests != nil {
		requests := *o.Requests
		s.Requests = &requests
	}
	s.Waiting = s.Calls
	s.Waiting.Limits, s.Waiting.MetaTimeout, s.Waiting.ArgumentTimeout = new(timeout.Config), false, false
	return s
}

// IsWait reports whether a tool is the wait tool.
func (s *Server) IsWait(tool string) bool {
	return s.Continuation != nil && tool == s.Continuation.Name()
}

// host returns how long the client waits, as far as it is a known host.
func (s *Server) host(client Client) (_ hosts.Host, waits policy.Budget) {
	if !s.Hosts || s.Continuation.After > 0 { // what is set by hand goes first
		return hosts.Host{}, policy.Budget{}
	}
	h, _ := hosts.Find(client.Name)
	return h, h.Budget()
}

// A Client is the clientInfo of a client.
type Client struct{ Name, Version string }

// Initialized logs which host the client is, where the server has Hosts and knows it.
func (s *Server) Initialized(client Client) {
	log := s.Logger
	if log == nil {
		log = s.Calls.Policy.Current().Logger
	}
	h, waits := s.host(client)
	if log == nil || waits == (policy.Budget{}) {
		return
	}
	by, _ := waits.Answer(true)
	texts.Ask(func() { // beside the request, which no limit bounds
		log.LogAttrs(context.Background(), slog.LevelInfo, "the host is known: what it would give up is continued",
			slog.String("host", h.Name), slog.String("client", client.Name), slog.String("version", client.Version),
			slog.Duration("within", by.Left), slog.Duration("silence", by.Idle))
	})
}

// Unlisted does for a tool what [Continuation.Unlisted] does, for this client.
func (s *Server) Unlisted(tool string, client Client) bool {
	if s.Continuation == nil {
		return false
	}
	limits, err := s.Calls.Declaration(tool)
	if err != nil {
		return false
	}
	soft, _ := s.Calls.Policy.Soft(tool)
	_, waits := s.host(client)
	by, _ := waits.Answer(false)
	return s.Continuation.within(by).Unlisted(timeout.Config{Total: limits.Total, Idle: limits.Idle, Grace: limits.Grace}, soft)
}

// Call returns a call of a tool as [Do] needs to know it, but for its Caller, and false if it can only be plain. That is
// what most calls are, and they pay for no more than this. asked is the "task" of its params, and heard says that the
// client gets the progress of the call.
func (s *Server) Call(tool string, asked json.RawMessage, meta map[string]any, heard bool, client Client) (c Call, ok bool) {
	c.Soft, c.TaskOnly = s.Calls.Policy.Soft(tool)
	if c.Asked = asked; !s.Offered {
		c.Asked, c.TaskOnly = nil, false
	}
	if c.Asked == nil && !c.TaskOnly && c.Soft == 0 && s.Continuation == nil {
		return c, false
	}
	c.Tool, c.Await = tool, s.Await
	_, waits := s.host(client)
	c.Within, _ = waits.Answer(heard)
	c.Continuation = s.Continuation
	if budget, _ := policy.ReadBudget(meta); budget != (policy.Budget{}) {
		by, _ := budget.Answer(heard)
		c.Within = c.Within.Shorter(by)
		if !c.TaskOnly && !s.Unlisted(tool, client) {
			c.Continuation = nil // a client would refuse the result of a tool that lists an output schema
		}
	}
	return c, true
}

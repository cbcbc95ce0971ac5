package adapter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"maps"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/hosts"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Server handles the calls of an MCP server with [Options]. Make one with [NewServer]. It is safe for concurrent use.
type Server struct {
	Options // a copy; Tasks is set if Continuation is, Continuation is set if Hosts is, and Principal returns in 5 s

	offered bool              // whether tasks are offered, and not only continuations
	calls   toolcall.Settings // of tools
	waiting toolcall.Settings // of the wait tool
	answers *answers          // nil without Idempotency
}

// NewServer returns a Server with a copy of the options; nil means none. handler reports whether it is for the calls of
// one tool. NewServer panics with a [*timeout.ConfigError] if options contradict each other, or, for one tool, if an
// option other than Await is set that only a whole server can have.
func NewServer(o *Options, handler bool) *Server {
	if o == nil {
		o = new(Options)
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Requests", o.Requests != nil}, {"Declare", o.Declare}, {"Methods", o.Methods != nil}, {"Tasks", o.Tasks != nil}, {"Hosts", o.Hosts},
		{"Continuation", o.Continuation != nil}, {"Idempotency", o.Idempotency}, {"Principal", o.Principal != nil},
	} {
		if handler && field.set {
			refuse(field.name, "set for a Handler", "a field of the Options of Install")
		}
	}
	if o.Methods != nil && !o.Declare {
		refuse("Methods", "set without Declare", "Declare beside it")
	}
	if o.Principal != nil && o.Tasks == nil && o.Continuation == nil && !o.Hosts && !o.Idempotency {
		refuse("Principal", "set alone", "Tasks, Continuation, Hosts or Idempotency beside it")
	}
	s := &Server{Options: *o, calls: o.calls(), offered: o.Tasks != nil}
	s.Methods = maps.Clone(o.Methods)
	if o.Idempotency {
		s.answers = new(answers)
	}
	if o.Principal != nil {
		s.Principal = bounded(o.Principal)
	}
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
	s.waiting = s.calls
	s.waiting.Limits, s.waiting.MetaTimeout, s.waiting.ArgumentTimeout = new(timeout.Config), false, false
	return s
}

// Settings returns the settings for the calls of a tool. waits reports whether the tool is the wait tool, whose calls
// do not have the limits of the calls that they wait for.
func (s *Server) Settings(tool string) (_ *toolcall.Settings, waits bool) {
	if s.Continuation != nil && tool == s.Continuation.name() {
		return &s.waiting, true
	}
	return &s.calls, false
}

// Listing returns what tools/list says of a tool to a client. limits are the declared limits, with the soft limit if the
// server offers tasks, or nil without Declare and where the limits cannot be read. support is the "taskSupport" in the
// "execution" of the tool, which only protocol 2025-11-25 has; "" means to leave it out. unlisted reports whether the
// tool must list no output schema; see [Continuation.Unlisted]. An empty name stands for the server itself, and every
// tool that the policy does not name: limits then have the Methods of the options, which the caller must not change,
// and no soft limit.
func (s *Server) Listing(tool string, client Caller) (limits *policy.Declaration, support string, unlisted bool) {
	calls, _ := s.Settings(tool)
	soft, taskOnly := calls.Policy.Soft(tool)
	switch {
	case !s.offered || !client.legacy():
	case taskOnly:
		support = "required"
	case soft != 0:
		support = "optional"
	}
	if d, err := calls.Declaration(tool); err == nil && s.Declare {
		limits = &d
		if tool == "" {
			d.Methods = s.Methods
		} else if s.offered {
			d.Soft = soft
		}
	}
	return limits, support, s.unlisted(tool, client)
}

// principalWait is how long the principal of a request may take.
const principalWait = 5 * time.Second

// bounded returns a function that returns what principal returns for a request. It waits until ctx ends, at most 5 s.
// If principal panics or does not return in time, the result is a new name that no other request has: "" would give the
// client what belongs to clients without authentication.
func bounded(principal func(context.Context) string) func(context.Context) string {
	return func(ctx context.Context) string {
		known := make(chan string, 1)
		go func() {
			defer close(known)
			defer func() { _ = recover() }()
			known <- principal(ctx)
		}()
		select { // a client that has gone needs no name
		case name, ok := <-known:
			if ok {
				return name
			}
		case <-time.After(principalWait):
		case <-ctx.Done():
		}
		return "unknown " + rand.Text()
	}
}

// host returns the host that the client is, and how long it waits. Both are zero if the host is not known, if the
// options have no Hosts, or if the After of their Continuation is above 0.
func (s *Server) host(client Caller) (_ hosts.Host, waits policy.Budget) {
	if !s.Hosts || s.Continuation.After > 0 { // what is set by hand goes first
		return hosts.Host{}, policy.Budget{}
	}
	h, _ := hosts.Find(client.Name)
	return h, h.Budget()
}

// Initialized logs which host the client is, if the options have Hosts, the host is known, and the After of a
// Continuation is not above 0.
func (s *Server) Initialized(client Caller) {
	log := s.Logger
	if log == nil {
		log = s.calls.Policy.Current().Logger
	}
	h, waits := s.host(client)
	if log == nil || waits == (policy.Budget{}) {
		return
	}
	by, _ := waits.Answer(true)
	texts.Ask(func() { // beside the request, which no limit bounds
		log.LogAttrs(context.Background(), slog.LevelInfo, "the host is known: what it would give up is continued",
			slog.String("host", h.Name), slog.String("client", client.Name),
			slog.Duration("within", by.Left), slog.Duration("silence", by.Idle))
	})
}

// unlisted reports whether a tool must list no output schema to a client; see [Continuation.Unlisted]. It returns false
// without a Continuation, and if the limits of the tool cannot be read.
func (s *Server) unlisted(tool string, client Caller) bool {
	if s.Continuation == nil {
		return false
	}
	limits, err := s.calls.Declaration(tool)
	if err != nil {
		return false
	}
	soft, _ := s.calls.Policy.Soft(tool)
	_, waits := s.host(client)
	by, _ := waits.Answer(false)
	return s.Continuation.within(by).Unlisted(timeout.Config{Total: limits.Total, Idle: limits.Idle, Grace: limits.Grace}, soft)
}

// Call returns the argument of [Do] for a call of a tool. It returns false if the call needs no Do, because it can
// neither become a task nor be continued; most calls need none, and cost no more than this check. asked is the
// "task" of the params, meta is their _meta, which may have a [policy.Budget], and heard reports whether the client
// gets the progress of the call. from returns the client; it is called at most once.
func (s *Server) Call(tool string, asked json.RawMessage, meta map[string]any, heard bool, from func() Caller) (c Call, ok bool) {
	c.Soft, c.TaskOnly = s.calls.Policy.Soft(tool)
	if c.Asked = asked; !s.offered {
		c.Asked, c.TaskOnly = nil, false
	}
	if c.Asked == nil && !c.TaskOnly && c.Soft == 0 && s.Continuation == nil {
		return c, false
	}
	c.Tool, c.await, c.Continuation, c.Caller = tool, s.Await, s.Continuation, from()
	c.Caller.Declared = c.Caller.Declared && s.offered
	_, waits := s.host(c.Caller)
	c.Within, _ = waits.Answer(heard)
	if budget, _ := policy.ReadBudget(meta); budget != (policy.Budget{}) {
		by, _ := budget.Answer(heard)
		c.Within = c.Within.Shorter(by)
		if !c.TaskOnly && !s.unlisted(tool, c.Caller) {
			c.Continuation = nil // a client would refuse the result of a tool that lists an output schema
		}
	}
	return c, true
}

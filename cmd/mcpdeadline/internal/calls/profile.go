package calls

import (
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Profile is what suits the host of a session.
type Profile struct {
	Limits *toolcall.Settings
	Keep   time.Duration // interval of keep-alive notifications; 0 sends none
	Plain  bool          // the host does not prefix the names of tools with that of the server
	Waits  policy.Budget // how long the host waits for a call, if that is known
	// Soft returns the soft limit of a tool, after which a call is answered with a handle, and whether calls of hosts
	// that support no tasks are refused. A limit of 0 means never, and a negative one at once.
	Soft func(tool string) (after time.Duration, taskOnly bool)
	// Continuation is what a call becomes after Soft; nil if no tool has a soft limit.
	Continuation *adapter.Continuation
}

// meet adopts what suits the host that sends an initialize request. SPEC 18.5.
func (s *Session) meet(m *jsonrpc.Message) {
	if s.Known == nil {
		return
	}
	client := m.Fields().Client
	fits := s.Known(client.Name, client.Version)
	if fits == nil {
		fits = &s.Profile
	}
	s.fits.Store(fits)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer("")
}

// profile returns what suits the host.
func (s *Session) profile() *Profile { return s.fits.Load() }

// handles returns where calls that outlive their answer are kept, or nil if none does.
func (s *Session) handles() *task.Tasks {
	if s.profile().Continuation == nil {
		return nil
	}
	return s.Tasks
}

// offer makes the tools that wait for calls of a server with this name. The caller holds s.mu.
func (s *Session) offer(server string) {
	s.waiter = nil
	if fits := s.profile(); fits.Continuation != nil {
		s.waiter = newWaiter(fits.Continuation, server, fits.Plain, s.Mark)
	}
}

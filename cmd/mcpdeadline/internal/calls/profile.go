package calls

import (
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/waittool"
)

// meet sets the profile for the host that sends an initialize request. SPEC 18.5.
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

// offer makes the tools that wait for continued calls of a server with this name. The caller holds s.mu.
func (s *Session) offer(server string) {
	s.waiter = nil
	if fits := s.profile(); fits.Continuation != nil {
		s.waiter = waittool.New(fits.Continuation, server, fits.Plain, s.Mark)
	}
}

package calls

import (
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/waittool"
)

// meet sets the profile of the session for the host that has sent the initialize request m. SPEC 18.5.
func (s *Session) meet(m *jsonrpc.Message) {
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

// offer sets s.waiter to the tools for continued calls of a server with the given name, or to nil if no call is
// continued. The caller holds s.mu.
func (s *Session) offer(server string) {
	s.waiter = nil
	if fits := s.profile(); fits.Continuation != nil {
		s.waiter = waittool.New(fits.Continuation, server, fits.Plain, s.Mark)
	}
}

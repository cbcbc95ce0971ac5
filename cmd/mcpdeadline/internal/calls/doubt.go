package calls

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

const (
	// Settle is how long the host waits for the server's answer to a call that was stopped, once the
	// server has proved to be alive. Many servers do not answer a cancelled request, as the protocol
	// permits.
	Settle = 250 * time.Millisecond
	// Overdue is how long after its limit a call is answered at the latest if the limit is the total: the
	// host waits for little longer than that.
	Overdue = time.Second
	// quiet is how long a server may ignore a ping and an unknown method before it is asked for its list.
	quiet = time.Second
	// busyLimit is how long a server that uses its processor may ignore everything.
	busyLimit = 2 * time.Minute
)

// doubted returns the doubt about a run, which it begins if there is none. grace is the server's time to say
// something before its time to answer a ping begins.
func (s *Session) doubted(up server.Run, grace time.Duration) *doubt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubt != nil && s.doubt.up == up && !s.doubt.over {
		return s.doubt
	}
	d := &doubt{up: up, proved: make(chan struct{})}
	if s.up != up { // the run has ended
		return d
	}
	if s.unread > 0 { // it has something to say, but the host does not read
		d.over = true
		close(d.proved)
		return d
	}
	s.doubt = d
	go s.settleDoubt(d, grace)
	return d
}

// prove ends the doubt about a run that has said something. The caller holds s.mu.
func (s *Session) prove() {
	if s.doubt != nil && !s.doubt.over {
		s.doubt.over = true
		close(s.doubt.proved)
	}
}

// settleDoubt asks a run for a sign of life, and kills it if it is dead. SPEC 16.4: it is dead if it
// answers neither a ping nor an unknown method nor a list, and uses no processor. Not every server knows
// pings, nor answers what it does not know. A server at a URL is asked by ping alone: to others it may
// answer with a status that means the end of the session.
func (s *Session) settleDoubt(d *doubt, grace time.Duration) {
	defer s.trust(d)
	_, forget := s.request(d.up, "ping", nil)
	defer forget()
	if !s.kills(d.up) { // no request waits for this run
		select {
		case <-d.proved:
		case <-d.up.Ended():
		}
		return
	}
	_, forget = s.request(d.up, "mcpdeadline/alive", nil)
	defer forget()
	early := min(quiet, grace)
	if s.waits(d, early) {
		return
	}
	list, params := s.list()
	_, forget = s.request(d.up, list, params)
	defer forget()
	if s.waits(d, grace-early) {
		return
	}
	spent, _ := s.processor(d.up) // a figure that is not known now is not known later
	for begun := time.Now(); ; {
		// The wait has two halves: if the proxy itself was stopped for a while, the answer may still be
		// unread when the first half ends.
		for range 2 {
			if s.waits(d, s.Ping/2) {
				return
			}
		}
		before := spent
		var known bool
		if spent, known = s.processor(d.up); !known || float64(spent-before) < alive.BusyRate*float64(s.Ping) || time.Since(begun) >= busyLimit {
			d.up.Kill(fmt.Errorf("killed: it answered neither a cancelled call nor a ping for %v", time.Since(begun).Round(s.Ping)))
			return
		}
	}
}

// waits waits for the end of a doubt, and returns false if limit passes first.
func (s *Session) waits(d *doubt, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-d.proved:
	case <-d.up.Ended():
	case <-timer.C:
		return false
	}
	return true
}

// list returns the method and the params of a request that every server answers.
func (s *Session) list() (method string, params any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialize == nil { // protocol 2026-07-28
		return "server/discover", map[string]any{"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "mcpdeadline", "version": "0"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}}
	}
	for _, list := range []string{"tools", "resources", "prompts"} {
		if s.lists[list] {
			return list + "/list", map[string]any{}
		}
	}
	return "tools/list", map[string]any{}
}

// trust sends a run the messages that have waited for it, if the run has proved to be alive. If the run has ended,
// they wait for the next run, even if the session has not seen the end yet.
func (s *Session) trust(d *doubt) {
	for {
		s.mu.Lock()
		if s.doubt != d || !d.over {
			s.mu.Unlock()
			return
		}
		waiting := s.waiting.take()
		if len(waiting) == 0 {
			s.doubt = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, m := range waiting {
			s.pass(d.up, m)
		}
	}
}

// processor returns how much processor time the processes of a run have used, and false if that is not
// known.
func (s *Session) processor(up server.Run) (spent time.Duration, known bool) {
	o, err := up.Processes().Observe(context.Background(), procgroup.Activity{})
	if err != nil {
		return 0, false
	}
	defer o.Stop()
	return alive.Spent(o), true
}

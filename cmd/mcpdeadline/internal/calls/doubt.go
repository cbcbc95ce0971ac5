package calls

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/alive"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

const (
	// Settle is how long the proxy waits for the answer to a call that was stopped, after any other message of the
	// server has shown that it is alive. The protocol permits servers not to answer a cancelled request.
	Settle = 250 * time.Millisecond
	// Overdue is how long after its total a call is answered at the latest, even if the grace is longer, because the
	// host waits little longer than the total.
	Overdue = time.Second
	// quiet is how long a server may ignore a ping and an unknown method before settleDoubt requests a list.
	quiet = time.Second
	// busyLimit is how long a server may ignore all requests of settleDoubt while it uses processor time.
	busyLimit = 2 * time.Minute
)

// doubted returns the doubt about a run, and begins one if there is none. grace is the time that the server has to send
// any message before its time to answer a ping begins.
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
	if s.unread > 0 { // the server has sent a message, and the host does not read
		d.over = true
		close(d.proved)
		return d
	}
	s.doubt = d
	go s.settleDoubt(d, grace)
	return d
}

// prove ends the doubt, if any, because the run has sent a message. The caller holds s.mu.
func (s *Session) prove() {
	if s.doubt != nil && !s.doubt.over {
		s.doubt.over = true
		close(s.doubt.proved)
	}
}

// settleDoubt sends requests to a run, and kills it if it is dead. SPEC 16.4: a run is dead if it answers neither a
// ping nor an unknown method nor a list, and uses no processor time. Three requests are needed because some servers do
// not support ping, and some do not answer unknown methods. A server at a URL gets only the ping: it may answer the
// others with an HTTP status that means the end of the session.
func (s *Session) settleDoubt(d *doubt, grace time.Duration) {
	defer s.trust(d)
	_, forget := s.request(d.up, "ping", nil, false)
	defer forget()
	if !s.kills(d.up) { // no request waits for this run
		select {
		case <-d.proved:
		case <-d.up.Ended():
		}
		return
	}
	_, forget = s.request(d.up, "mcpdeadline/alive", nil, false)
	defer forget()
	early := min(quiet, grace)
	if s.waits(d, early) {
		return
	}
	list, params := s.list()
	_, forget = s.request(d.up, list, params, false)
	defer forget()
	if s.waits(d, grace-early) {
		return
	}
	spent, _ := s.processor(d.up) // if it is unknown now, it is unknown later too
	for begun := time.Now(); ; {
		// The wait has two halves, in case the proxy itself was suspended: the first timer may then fire before the
		// answer has been read, which happens during the second half.
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

// waits waits until a doubt ends, because the run has sent a message or ended, and then returns true. It returns false
// if limit passes first.
func (s *Session) waits(d *doubt, limit time.Duration) bool {
	select {
	case <-d.proved:
	case <-d.up.Ended():
	case <-time.After(limit):
		return false
	}
	return true
}

// list returns the method and the params of a request that every server answers: a list that the server supports, or
// server/discover.
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

// trust sends a run the messages that were queued during the doubt d, if the run has proved to be alive. Otherwise the
// messages stay in the queue, for the next run. A message that is queued while trust sends is sent in the next round.
func (s *Session) trust(d *doubt) {
	s.release(d.up, func() []*jsonrpc.Message {
		if s.doubt != d || !d.over {
			return nil
		}
		waiting := s.waiting.take()
		if len(waiting) == 0 {
			s.doubt = nil
		}
		return waiting
	})
}

// processor returns the processor time that the processes of a run have used. known is false if it cannot be read.
func (s *Session) processor(up server.Run) (spent time.Duration, known bool) {
	o, err := up.Processes().Observe(context.Background(), procgroup.Activity{})
	if err != nil {
		return 0, false
	}
	defer o.Stop()
	return alive.Spent(o), true
}

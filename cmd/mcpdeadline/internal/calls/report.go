package calls

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

func (r *report) runs(run *adapter.Task) {
	r.out.Lock()
	defer r.out.Unlock()
	r.run = run
}

// reported handles a progress notification of the server, and forwards it if the host has requested progress. p, total
// and text are its fields. Because progress must increase, reported replaces a p that is not above the progress of the
// last keep-alive.
func (c *call) reported(m *jsonrpc.Message, p, total float64, text string) {
	if c.s.Alive.Progress {
		c.pulse.Beat(&progress.Update{Progress: p, Total: total, Message: text})
	}
	if !c.wantsProgress {
		return
	}
	c.out.Lock()
	defer c.out.Unlock()
	if c.over {
		return
	}
	if c.raised && p <= c.last {
		p = progress.Step(c.last)
		m = m.With(p, "params", "progress")
	} else {
		c.raised = false
	}
	c.reportSent, c.last, c.total, c.message, c.lastSent = true, p, total, text, time.Now()
	m.About = cmp.Or(m.About, string(c.id))
	c.tell(m)
}

// tell sends a notification about the call to the host, unless the call continues as a task that no longer permits it.
// The caller holds c.out.
func (c *call) tell(m *jsonrpc.Message) {
	_ = c.run.Notify(func(string, task.Form) error {
		c.s.Deliver(m)
		return nil
	})
}

// keepAlive starts to send a progress notification whenever no other was sent for the interval of the profile. It does
// nothing if the host has not requested progress. The method close ends it.
func (c *call) keepAlive() {
	keep := c.s.profile().Keep
	if by, _ := c.budget.Answer(true); keep > 0 && by.Idle > 0 {
		keep = min(keep, by.Idle/3)
	}
	if !c.wantsProgress || keep == 0 {
		return
	}
	keep = max(keep, time.Millisecond) // the budget of the host may be tiny
	c.out.Lock()
	defer c.out.Unlock()
	c.lastSent = time.Now()
	c.ticker = time.AfterFunc(keep, func() {
		c.out.Lock()
		defer c.out.Unlock()
		if c.over {
			return
		}
		next := keep - time.Since(c.lastSent)
		if next <= 0 {
			c.tick()
			next = keep
		}
		c.ticker.Reset(next)
	})
}

// tick sends a keep-alive notification, which describes the state of the call. The caller holds c.out.
func (c *call) tick() {
	known, s := c.pulse.Known(&c.s.load)
	// A call without limits gets a keep-alive only after a sign of life. Otherwise keep-alives would renew the limit of
	// the host for ever, although the call hangs.
	hopeless := s.Limits.Total == 0 && s.Limits.Idle == 0 && s.Beats == c.beats
	if c.beats = s.Beats; known == "" || hopeless {
		return
	}
	if c.message != "" {
		known = c.message + " (" + known + ")"
	}
	p := c.last
	if c.reportSent {
		p = progress.Step(p)
	}
	c.reportSent, c.last, c.raised, c.lastSent = true, p, true, time.Now()
	m := jsonrpc.Notification("notifications/progress", progress.Notification{ProgressToken: c.token, Progress: p, Total: c.total, Message: known})
	m.About = string(c.id)
	c.tell(m)
}

// close ends the notifications about the call. None is sent after it returns.
func (c *call) close() {
	c.out.Lock()
	defer c.out.Unlock()
	c.over = true
	if c.ticker != nil {
		c.ticker.Stop()
	}
}

// isToken reports whether raw, a JSON value, can be a progress token: it is a string or a number.
func isToken(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

package calls

import (
	"cmp"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

func (r *report) runs(run *adapter.Task) {
	r.out.Lock()
	defer r.out.Unlock()
	r.run = run
}

// reported passes on a notification of the server. Its progress is changed only if a keep-alive has
// already sent that number: progress has to increase.
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

// tell sends the host a notification about the call. The caller holds c.out.
func (c *call) tell(m *jsonrpc.Message) {
	_ = c.run.Notify(func() error {
		c.s.Deliver(m)
		return nil
	})
}

// keepAlive sends the host a notification whenever nothing else was sent for the interval.
func (c *call) keepAlive() {
	keep := c.s.profile().Keep
	if by, _ := c.budget.Answer(true); keep > 0 && by.Idle > 0 {
		keep = min(keep, by.Idle/3)
	}
	if !c.wantsProgress || keep == 0 {
		return
	}
	keep = max(keep, time.Millisecond) // whatever the host says
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

// tick sends a keep-alive. The caller holds c.out.
func (c *call) tick() {
	known, s := c.pulse.Known(&c.s.load)
	// A call without limits needs a sign of life since the last keep-alive: otherwise the keep-alives
	// would hide from the host that it hangs.
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

// close ends the report: nothing more is sent.
func (c *call) close() {
	c.out.Lock()
	defer c.out.Unlock()
	c.over = true
	if c.ticker != nil {
		c.ticker.Stop()
	}
}

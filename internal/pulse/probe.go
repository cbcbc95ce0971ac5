package pulse

import (
	"slices"
	"time"
)

// A Probe looks from time to time for signs of life that are not reported as beats, such as the work
// of a process. On a busy machine a look may start late or take long. So an idle limit that falls due
// is in doubt until a recent enough look has ended. Only then is it judged.
//
// The engine starts the look but does not wait for it: a doubt only moves the engine's timer, and
// ends after a while even if the look does not. A look by the engine itself was rejected: the engine
// would have to call it without the lock, and handle everything that happens meanwhile.
type Probe struct {
	look   func()
	recent time.Duration // greatest age of a look that counts when the limit falls due
	parts  []*probePart
}

// A probePart is the state of a Probe in one cell.
type probePart struct {
	*Probe
	cell *Cell
	now  time.Duration // start of the look in progress
	seen time.Duration // start of the last completed look; guarded by the cell's lock
}

const (
	// A doubt lasts at most the idle limit divided by doubtShare, or minDoubt if that is longer.
	doubtShare = 4
	// minDoubt is the time that a look gets even if the idle limit is short. A look at the processes of
	// a command took 1.4 s on a busy machine with 2 processors.
	minDoubt = 2 * time.Second
)

// Probe registers look with c and with the enclosing cells that have an idle limit. If such a limit
// falls due, and no completed look began at most recent before that, look is called on a separate
// goroutine. Each look must call Begin and End, even a look that the caller starts for itself.
func (c *Cell) Probe(recent time.Duration, look func()) *Probe {
	p := &Probe{look: look, recent: recent}
	for ; c != nil; c = c.parent {
		if c.idle <= 0 {
			continue
		}
		part := &probePart{Probe: p, cell: c, seen: c.Now()}
		p.parts = append(p.parts, part)
		c.mu.Lock()
		r := c.rarely()
		r.probes = append(r.probes, part)
		c.mu.Unlock()
	}
	return p
}

// Begin marks the start of a look. No other look may be in progress, except one that was
// inconclusive and did not call End.
func (p *Probe) Begin() {
	for _, part := range p.parts {
		part.now = part.cell.Now()
	}
}

// End marks the end of a look. A look that has found a sign of life must beat before that.
func (p *Probe) End() {
	for _, part := range p.parts {
		part.cell.mu.Lock()
		part.seen = part.now
		part.cell.engine.Rearm()
		part.cell.mu.Unlock()
	}
}

// Close removes the probe. If an idle limit is in doubt at that time, Close decides the doubt in
// favour of the tool, because no look can resolve it any more.
func (p *Probe) Close() {
	for _, part := range p.parts {
		c := part.cell
		c.mu.Lock()
		if now := c.Now(); c.Doubt(c.IdleDue(), now) {
			c.engine.Excuses(now)
		}
		c.rare.probes = slices.DeleteFunc(c.rare.probes, func(other *probePart) bool { return other == part })
		c.mu.Unlock()
	}
}

// Doubt reports whether the idle limit, which falls due at due, is in doubt at now: it has fallen due,
// but some probe has no recent look yet, and the doubt has not lasted too long. The cell is locked.
func (c *Cell) Doubt(due, now time.Duration) bool {
	return c.rare != nil && due != Forever && now >= due && now < c.judged(due) && c.unseen(due)
}

// unseen reports whether the last look of some probe is too old for a limit that falls due at due.
func (c *Cell) unseen(due time.Duration) bool {
	return slices.ContainsFunc(c.rare.probes, func(p *probePart) bool { return p.seen < due-p.recent })
}

// judged returns the latest instant at which a doubt about a limit that falls due at due ends.
func (c *Cell) judged(due time.Duration) time.Duration {
	return due + min(max(c.idle/doubtShare, minDoubt), Forever-due)
}

// AskProbes starts a look of each probe if the idle limit is in doubt, once per doubt. It does not
// wait for the looks. The cell is locked.
func (c *Cell) AskProbes(now time.Duration) {
	due := c.IdleDue()
	if !c.Doubt(due, now) || c.rare.probedDue == due {
		return
	}
	c.rare.probedDue = due
	for _, p := range c.rare.probes {
		go p.look()
	}
}

// IdleJudged returns IdleDue or, during a doubt for which AskProbes has started looks, the latest
// instant at which the doubt ends. The cell is locked.
func (c *Cell) IdleJudged() time.Duration {
	due := c.IdleDue()
	if c.rare != nil && due != Forever && c.rare.probedDue == due && c.unseen(due) {
		return c.judged(due)
	}
	return due
}

package pulse

import (
	"slices"
	"time"
)

// A Probe finds signs of life that nobody reports, by a look from time to time: the work of
// a process, say. On a busy machine a look may come late, or take its time. So an idle limit
// that falls due is in doubt until a look that is recent enough is over, and then only is
// judged.
//
// The engine asks for that look and does not wait for it: what is done about a doubt is no
// more than to set the timer, and where a look is never over the doubt is, after a while.
// Rejected: a look by the engine itself, which would have to call it without the lock, and
// so to settle what comes meanwhile.
type Probe struct {
	look   func()
	recent time.Duration // how old a look may be when the limit falls due
	parts  []*probePart
}

// A probePart is a Probe as one cell sees it.
type probePart struct {
	*Probe
	cell *Cell
	now  time.Duration // when the look under way has begun
	seen time.Duration // when the last one had that is over; under the cell's lock
}

const (
	// doubtShare is for which part of the idle limit it may be in doubt.
	doubtShare = 4
	// minDoubt is the least time that a look has: it takes no less where the limit is short. One at
	// the processes of a command took 1.4 s on a busy machine with 2 processors.
	minDoubt = 2 * time.Second
)

// Probe makes look be called, on a goroutine of its own, when an idle limit of the cell or of
// one around has fallen due and no look was begun since recent before that. look calls Begin
// and End, as all looks do, whoever has asked for them.
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

// Begin says that a look begins. No other is under way, but for one that could not tell, and had no End.
func (p *Probe) Begin() {
	for _, part := range p.parts {
		part.now = part.cell.Now()
	}
}

// End says that the look is over, and that it has beaten if it has found something.
func (p *Probe) End() {
	for _, part := range p.parts {
		part.cell.mu.Lock()
		part.seen = part.now
		part.cell.engine.Rearm()
		part.cell.mu.Unlock()
	}
}

// Close ends it. A doubt that there is goes in favour of the tool: there is nothing left that
// could be looked at.
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

// Doubt reports whether the idle limit, which falls due then, has done so at or before now and
// cannot be judged yet. The cell is locked.
func (c *Cell) Doubt(due, now time.Duration) bool {
	return c.rare != nil && due != Forever && now >= due && now < c.judged(due) && c.unseen(due)
}

// unseen reports whether there is a probe whose last look is too old for a limit that falls
// due then.
func (c *Cell) unseen(due time.Duration) bool {
	return slices.ContainsFunc(c.rare.probes, func(p *probePart) bool { return p.seen < due-p.recent })
}

// judged is until when there may be a doubt.
func (c *Cell) judged(due time.Duration) time.Duration {
	return due + min(max(c.idle/doubtShare, minDoubt), Forever-due)
}

// AskProbes asks for what a doubt needs, once for each. The cell is locked.
func (c *Cell) AskProbes(now time.Duration) {
	due := c.IdleDue()
	if !c.Doubt(due, now) || c.rare.asked == due {
		return
	}
	c.rare.asked = due
	for _, p := range c.rare.probes {
		go p.look()
	}
}

// IdleJudged is IdleDue, or, while there is a doubt about which the probes were asked, when
// that ends at the latest. The cell is locked.
func (c *Cell) IdleJudged() time.Duration {
	due := c.IdleDue()
	if c.rare != nil && due != Forever && c.rare.asked == due && c.unseen(due) {
		return c.judged(due)
	}
	return due
}

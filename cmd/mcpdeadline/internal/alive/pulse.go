package alive

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Pulse tracks the signs of life of a running call. Progress that the server reports for a call is a sign of life
// of that call. Log messages, output on stderr and work of the server's processes belong to no particular call, so
// they are a sign of life of every call in flight; heartbeats on its socket belong to no particular call, either.
type Pulse struct {
	mu       sync.Mutex
	ctx      context.Context // of the execution; nil before and after it
	ended    bool            // the execution has ended
	lastSign time.Time       // time of the last sign of life, or of the beginning
	observer server.Observer
	timer    *time.Timer // starts server.Observer
	holds    map[*hold]struct{}
}

// Begin makes the signs of life renew the limits of ctx, the context of the call's execution, which has begun. There
// may be no server yet.
func (p *Pulse) Begin(ctx context.Context, server func() server.Observable, signs Signs, load *Load) {
	if signs.Notify { // at once: the server may say that it needs more time as soon as it has the call
		if process := server(); process != nil {
			process.Attend(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.lastSign = ctx, time.Now()
	for h := range p.holds { // the server has the call already and may have asked a question
		h.release = heartbeat.Hold(ctx)
	}
	idle := timeout.FromContext(ctx).Snapshot().Limits.Idle
	work := signs.Work.CPU || signs.Work.IO
	if idle == 0 || !work && !signs.Notify {
		return
	}
	soon := min(idle/8, time.Second) // most calls end before it is worth observing them
	p.timer = time.AfterFunc(soon, func() {
		process := server()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.ctx == nil:
		case process == nil:
			p.timer.Reset(soon)
		default:
			if signs.Notify {
				process.Attend(p.ctx)
			}
			if work {
				// An error means that the process has ended, and the call with it.
				p.observer, _ = process.Observe(p.ctx, signs.Work)
				load.measure(p.observer) // the first sample, for the rate
			}
		}
	})
}

// End ends the pulse. If look is true, it returns what the server's processes are doing.
func (p *Pulse) End(look bool) (tree procgroup.ProcessList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.ended = nil, true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.observer != nil {
		if look {
			tree = p.observer.Tree()
		}
		p.observer.Stop()
		p.observer = nil
	}
	for h := range p.holds {
		h.let()
	}
	p.holds = nil
	return tree
}

// Beat records a sign of life. update is the progress of the call, or nil.
func (p *Pulse) Beat(update *progress.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return
	}
	p.lastSign = time.Now()
	if update != nil {
		progress.Report(p.ctx, *update)
	} else {
		heartbeat.Beat(p.ctx)
	}
}

// A hold suspends the idle check of a call.
type hold struct {
	release func() // nil until the execution begins
}

func (h *hold) let() {
	if h.release != nil {
		h.release()
	}
}

// Hold suspends the idle check until release or the end of the call: the server waits for an answer
// from the host, which may be waiting for a person.
func (p *Pulse) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return func() {}
	}
	h := new(hold)
	if p.ctx != nil {
		h.release = heartbeat.Hold(p.ctx)
	}
	if p.holds == nil {
		p.holds = make(map[*hold]struct{})
	}
	p.holds[h] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, ok := p.holds[h]; ok {
			delete(p.holds, h)
			h.let()
		}
	}
}

// Known describes the state of the call in words, or returns "" before the execution has begun.
func (p *Pulse) Known(load *Load) (string, timeout.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return "", timeout.Snapshot{}
	}
	s := timeout.FromContext(p.ctx).Snapshot()
	silent := time.Since(p.lastSign)
	var said []string
	cpu, cpuKnown := load.measure(p.observer)
	switch {
	case s.Hold > 0:
		said = append(said, "waiting for an answer to the server's question")
	case silent-s.SinceBeat > time.Second || cpuKnown && cpu >= BusyRate:
		said = append(said, "working")
	case cpuKnown:
		said = append(said, "no work seen")
	default:
		said = append(said, "waiting for the server")
	}
	if cpuKnown && cpu >= BusyRate {
		said = append(said, fmt.Sprintf("%.0f %% of a core", 100*cpu))
	}
	if seconds := silent.Truncate(time.Second); seconds > 0 {
		said = append(said, fmt.Sprintf("silent for %.0f s", seconds.Seconds()))
	}
	return strings.Join(said, ", "), s
}

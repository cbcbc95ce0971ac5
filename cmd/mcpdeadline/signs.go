package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// observable returns an error where the work of a server's processes cannot be seen.
func observable(a procgroup.Activity) error {
	if (a.CPU || a.IO) && runtime.GOOS != "linux" {
		return errors.New("the work of a server is seen on Linux only")
	}
	return a.Check()
}

// A pulse is what is known of a call while it goes on. What the server reports of this very call
// is a sign of life of it. Log messages, output on stderr and work of the server's processes are
// nobody's in particular, and so a sign of life of every call that is waiting for the server.
type pulse struct {
	mu       sync.Mutex
	ctx      context.Context // the execution's; nil before it and after
	ended    bool            // it is after
	heard    time.Time       // when the server was last heard of, or the call began
	observer *procgroup.Observer
	timer    *time.Timer // begins to observe
	holds    map[*hold]struct{}
}

// begin is called when the execution of the call has begun. The server may be yet to come.
func (p *pulse) begin(ctx context.Context, server func() *os.Process, a procgroup.Activity, load *load) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.heard = ctx, time.Now()
	for h := range p.holds { // the server has got the call already, and may have been quick to ask
		h.release = heartbeat.Hold(ctx)
	}
	idle := timeout.FromContext(ctx).Snapshot().Limits.Idle
	if idle == 0 || !a.CPU && !a.IO {
		return
	}
	soon := min(idle/8, time.Second) // most calls are over before anybody would look
	p.timer = time.AfterFunc(soon, func() {
		process := server()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.ctx == nil:
		case process == nil:
			p.timer.Reset(soon)
		default:
			// An error is that the process has ended, and then so has the call.
			p.observer, _ = procgroup.Observe(p.ctx, process, a)
			load.of(p.observer) // to compare with
		}
	})
}

// end returns what the server's processes are doing, where that was asked for.
func (p *pulse) end(look bool) (tree procgroup.ProcessList) {
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

// beat is a sign of life; update is what the call itself reports, nil where it does not.
func (p *pulse) beat(update *progress.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return
	}
	p.heard = time.Now()
	if update != nil {
		progress.Report(p.ctx, *update)
	} else {
		heartbeat.Beat(p.ctx)
	}
}

// A hold is one of the idle check.
type hold struct {
	release func() // nil until the execution begins
}

func (h *hold) let() {
	if h.release != nil {
		h.release()
	}
}

// hold holds the idle check until release, or the end: the server waits for an answer from the
// host, which waits for a person.
func (p *pulse) hold() (release func()) {
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

// busyRate is the use of processor time, as a fraction of one core, from which a server is busy: the
// rate from which procgroup.Activity takes it for work.
const busyRate = 0.01

// known says in words what is known of the call, "" before its execution has begun.
func (p *pulse) known(load *load) (string, timeout.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx == nil {
		return "", timeout.Snapshot{}
	}
	s := timeout.FromContext(p.ctx).Snapshot()
	silent := time.Since(p.heard)
	var said []string
	cpu, cpuKnown := load.of(p.observer)
	switch {
	case s.Hold > 0:
		said = append(said, "waiting for an answer to the server's question")
	case silent-s.SinceBeat > time.Second || cpuKnown && cpu >= busyRate:
		said = append(said, "working")
	case cpuKnown:
		said = append(said, "no work seen")
	default:
		said = append(said, "waiting for the server")
	}
	if cpuKnown && cpu >= busyRate {
		said = append(said, fmt.Sprintf("%.0f %% of a core", 100*cpu))
	}
	if seconds := silent.Truncate(time.Second); seconds > 0 {
		said = append(said, fmt.Sprintf("silent for %.0f s", seconds.Seconds()))
	}
	return strings.Join(said, ", "), s
}

// A load is how much processor time the processes of a server use. A look at them is shared by
// all calls that ask within a second: it takes up to 5 ms.
type load struct {
	mu    sync.Mutex
	at    time.Time
	spent time.Duration
	rate  float64 // of one core, since the look before
	known bool
}

// of returns the rate since the last look, and false where there was none within the last
// minutes.
func (l *load) of(o *procgroup.Observer) (float64, bool) {
	if o == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since := time.Since(l.at)
	if since < time.Second {
		return l.rate, l.known
	}
	var spent time.Duration
	for _, p := range o.Tree().Processes {
		spent += p.CPU
	}
	// What ends takes its time with it.
	l.rate, l.known = max(float64(spent-l.spent), 0)/float64(since), !l.at.IsZero() && since < 5*time.Minute
	l.at, l.spent = time.Now(), spent
	return l.rate, l.known
}

package calls

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Signs are the signs of life: what renews the idle limit.
type Signs struct {
	Progress, Log, Stderr bool
	Notify                bool // heartbeats on the socket of procgroup.Notify
	Work                  procgroup.Activity
}

// CanObserve returns an error if the work of a server's processes cannot be observed.
func CanObserve(a procgroup.Activity) error {
	if (a.CPU || a.IO) && runtime.GOOS != "linux" {
		return errors.New("the work of a server is observed on Linux only")
	}
	return a.Check()
}

// A pulse tracks the signs of life of a running call. Progress that the server reports for a call is a
// sign of life of that call. Log messages, output on stderr and work of the server's processes belong
// to no particular call, so they are a sign of life of every call in flight; and so do heartbeats on its socket.
type pulse struct {
	mu       sync.Mutex
	ctx      context.Context // of the execution; nil before and after it
	ended    bool            // the execution has ended
	heard    time.Time       // time of the last sign of life, or of the beginning
	observer server.Observer
	timer    *time.Timer // starts server.Observer
	holds    map[*hold]struct{}
}

// begin is called when the execution of the call has begun. There may be no server yet.
func (p *pulse) begin(ctx context.Context, server func() server.Observable, signs Signs, load *load) {
	if signs.Notify { // at once: the server may say that it needs more time as soon as it has the call
		if process := server(); process != nil {
			process.Attend(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.heard = ctx, time.Now()
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
				load.of(p.observer) // the first sample, for the rate
			}
		}
	})
}

// end ends the pulse. If look is true, it returns what the server's processes are doing.
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

// beat records a sign of life. update is the progress of the call, or nil.
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

// A hold suspends the idle check of a call.
type hold struct {
	release func() // nil until the execution begins
}

func (h *hold) let() {
	if h.release != nil {
		h.release()
	}
}

// hold suspends the idle check until release or the end of the call: the server waits for an answer
// from the host, which may be waiting for a person.
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
// rate from which procgroup.Activity counts it as work.
const busyRate = 0.01

// known describes the state of the call in words. It returns "" before the execution has begun.
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

// A load measures how much processor time the processes of a server use. A measurement takes up to
// 5 ms, so all calls that ask within a second share one.
type load struct {
	mu    sync.Mutex
	at    time.Time
	spent time.Duration
	rate  float64 // cores in use since the previous measurement
	known bool
}

// reset forgets what the processes of an earlier server have used.
func (l *load) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.spent, l.rate, l.known = time.Time{}, 0, 0, false
}

// of returns the rate since the last measurement. It reports false if there was none within the last
// 5 minutes.
func (l *load) of(o server.Observer) (float64, bool) {
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
	// The time of a process that has ended is missing, so the difference may be negative.
	l.rate, l.known = max(float64(spent-l.spent), 0)/float64(since), !l.at.IsZero() && since < 5*time.Minute
	l.at, l.spent = time.Now(), spent
	return l.rate, l.known
}

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

// A Pulse tracks the signs of life of a running call. Progress that the server reports for a call is a sign of life of
// that call. Log messages, output on stderr, work of the server's processes and heartbeats on its socket belong to no
// particular call, so they are signs of life of every call in flight.
type Pulse struct {
	mu       sync.Mutex
	ctx      context.Context // the context of the execution; nil before Begin and after End
	lastSign time.Time       // time of the last Beat, or of Begin
	observer server.Observer // of the work of the server's processes; set by timer, nil if there is none
	timer    *time.Timer     // attaches the call to the server's processes; nil if no sign of life needs them
	holds    int             // number of questions that the host has not answered
	release  func()          // ends the suspension of the idle limit; nil if it is not suspended
}

// Begin makes the signs of life renew the limits of ctx, the context of the call's execution, until End. server returns
// the processes of the server, or nil if there are none at the moment. If heartbeats on the socket are a sign of life,
// Begin calls server at once. If heartbeats or work renew an idle limit, a timer calls server later, again and again
// until its result is not nil or the Pulse ends.
func (p *Pulse) Begin(ctx context.Context, server func() server.Observable, signs Signs, load *Load) {
	if signs.Notify { // before the timer, because the server may extend its limits as soon as it has the call
		if process := server(); process != nil {
			process.Attend(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.lastSign = ctx, time.Now()
	if p.holds > 0 { // the server has the call already, and may have sent a question before Begin
		p.release = heartbeat.Hold(ctx)
	}
	idle := timeout.FromContext(ctx).Snapshot().Limits.Idle
	work := signs.Work.CPU || signs.Work.IO
	if idle == 0 || !work && !signs.Notify {
		return
	}
	soon := max(min(idle/8, time.Second), time.Millisecond) // most calls end before that, without the cost of an Observer
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
				// An error means that the process has ended, and then the call ends too.
				p.observer, _ = process.Observe(p.ctx, signs.Work)
				load.measure(p.observer) // the first sample, from which later ones compute the rate
			}
		}
	})
}

// End ends the Pulse. If look is true and the server is observed, End returns the server's processes.
func (p *Pulse) End(look bool) (tree procgroup.ProcessList) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = nil
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
	p.resume()
	return tree
}

// Beat records a sign of life of the call. update is the progress of the call, or nil. Beat does nothing before Begin
// and after End.
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

// Hold suspends the idle limit until release is called or the call ends, because the server waits for an answer from
// the host, which may wait for a person.
func (p *Pulse) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds++; p.holds == 1 && p.ctx != nil {
		p.release = heartbeat.Hold(p.ctx)
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.holds--; p.holds == 0 {
			p.resume()
		}
	})
}

// resume ends the suspension of the idle limit, if any. The caller holds p.mu.
func (p *Pulse) resume() {
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

// Known returns a description of the state of the call, for a person, and a snapshot of its execution. Before Begin and
// after End, both are zero.
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

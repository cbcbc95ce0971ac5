//go:build unix

package simulate

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle handles the pending signals, and waits while the process is stopped. The process calls it before each step.
// It returns false if the process must end.
func (p *process) settle() bool {
	for {
		p.m.mu.Lock()
		stopped, doomed := p.stopped, p.signal != 0
		var sig syscall.Signal
		if stopped == nil {
			if i := slices.IndexFunc(p.pending, func(s syscall.Signal) bool { return !p.handling[s] }); i >= 0 {
				sig = p.pending[i]
				p.pending = slices.Delete(p.pending, i, i+1)
			}
		}
		p.m.mu.Unlock()
		switch {
		case p.dead():
			return false
		case doomed: // the process is unkillable for now: it waits until it can end
			<-p.dying
			return false
		case stopped != nil:
			select {
			case <-stopped:
			case <-p.dying:
				return false
			}
		case sig != 0:
			if !p.handle(sig) {
				return false
			}
		default:
			return true
		}
	}
}

// handle runs the script of a signal. The signal is blocked meanwhile, as after sigaction(2). handle returns false if
// the process must end.
func (p *process) handle(sig syscall.Signal) bool {
	p.m.mu.Lock()
	script := p.traps[sig]
	p.handling[sig] = true
	p.m.mu.Unlock()
	ok := p.perform(script)
	p.m.mu.Lock()
	p.handling[sig] = false
	p.m.mu.Unlock()
	return ok
}

// halt stops the process because of sig. The callers of halt and of the methods below hold m.mu.
func (p *process) halt(sig syscall.Signal) {
	if p.stopped == nil {
		p.stopped, p.stoppedBy = make(chan struct{}), sig
		p.stopWorking()
		p.m.noteWait()
	}
}

// kill sends a signal to the process, as kill(2) does, and records it in m.Sent and in the trace.
func (p *process) kill(sig syscall.Signal) {
	if sig != 0 && !p.ended {
		p.m.Sent = append(p.m.Sent, Sent{time.Now(), p.pid, sig, p.traps[sig] != nil})
	}
	if p.ended || p.condemned || sig == 0 || p.signal == syscall.SIGKILL {
		return
	}
	p.note(unix.SignalName(sig))
	p.deliver(sig)
}

// deliver makes a signal take effect: the process dies, stops, continues, handles it later, or ignores it.
func (p *process) deliver(sig syscall.Signal) {
	switch sig {
	case syscall.SIGKILL:
		p.die(sig)
		return
	case syscall.SIGSTOP:
		p.halt(sig)
		return
	case syscall.SIGCONT:
		if p.stopped != nil {
			close(p.stopped)
			p.stopped = nil
			if p.state == working {
				p.working = time.Now()
			}
			p.m.noteWait()
			later := p.later
			p.later = nil
			for _, s := range later {
				p.deliver(s)
			}
		}
		if _, trapped := p.traps[sig]; !trapped {
			return
		}
	}
	script, trapped := p.traps[sig]
	switch {
	case trapped && script == nil:
	case p.stopped != nil:
		p.later = append(p.later, sig)
	case trapped:
		p.pending = append(p.pending, sig)
		p.m.noteWait()
		select {
		case p.wake <- struct{}{}:
		default:
		}
	case sig == syscall.SIGWINCH || sig == syscall.SIGCHLD || sig == syscall.SIGURG:
	default:
		p.die(sig)
	}
}

// die kills the process with a signal: at once, or at the end of the time in which it is unkillable.
func (p *process) die(sig syscall.Signal) {
	if p.condemned {
		return
	}
	if p.signal == 0 || sig == syscall.SIGKILL {
		p.signal = sig
	}
	if left := time.Until(p.unkillable); left > 0 {
		go func() {
			t := time.NewTimer(left)
			defer t.Stop()
			select {
			case <-t.C:
			case <-p.m.off:
				return // Off kills the process
			case <-p.dying:
				return
			}
			p.m.mu.Lock()
			defer p.m.mu.Unlock()
			p.condemn()
		}()
		return
	}
	p.condemn()
}

// condemn makes the goroutine of the process end it at once.
func (p *process) condemn() {
	if !p.condemned {
		p.condemned = true
		p.m.noteWait()
		close(p.dying)
	}
}

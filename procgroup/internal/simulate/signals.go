//go:build unix

package simulate

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settle handles signals, and waits while the process is stopped, before its next step. It reports false if the
// process has ended.
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
		case doomed: // it does nothing more until it can be killed
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

// handle runs the script of a signal, which is blocked meanwhile, as after sigaction(2). It reports false if the
// process has ended.
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

// halt stops the process. The caller holds m.mu, as the callers of the next methods do.
func (p *process) halt(sig syscall.Signal) {
	if p.stopped == nil {
		p.stopped, p.stoppedBy = make(chan struct{}), sig
		p.stopWorking()
		p.m.noteWait()
	}
}

// kill sends a signal to the process, as kill(2) does.
func (p *process) kill(sig syscall.Signal) {
	if sig != 0 && !p.ended {
		p.m.sent = append(p.m.sent, Sent{time.Now(), p.pid, sig, p.traps[sig] != nil})
	}
	if p.ended || p.condemned || sig == 0 || p.signal == syscall.SIGKILL {
		return
	}
	p.note(unix.SignalName(sig))
	p.deliver(sig)
}

// deliver gives a signal its effect on the process.
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

// die ends the process by a signal, now or as soon as it can be killed.
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

func (p *process) condemn() {
	if !p.condemned {
		p.condemned = true
		p.m.noteWait()
		close(p.dying)
	}
}

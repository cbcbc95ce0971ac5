package lease_test

import (
	"context"
	"math"
	"sync"
	"time"
)

// A machine is a simulated process with a clock of its own, which may be paused, killed, and cut off from the engine.
type machine struct {
	over  <-chan struct{} // closed at the end of the history
	begun time.Time
	speed float64

	mu      sync.Mutex
	dead    bool
	resumed chan struct{} // nil while it runs
	paused  time.Time     // when a pause has last begun or ended
	cut     cut
	healed  chan struct{} // nil while it is connected
	faulty  time.Time     // when a fault has last begun or ended
}

// A cut is what happens to a request of a machine that is cut off.
type cut int

const (
	refused  cut = iota // it fails at once
	unheard             // it fails when its context ends
	late                // it ignores its context and arrives when the cut is over
	answered            // it arrives, and its answer does not
	cuts
)

func (m *machine) Now() time.Time {
	return m.begun.Add(time.Duration(float64(time.Since(m.begun)) * m.speed))
}

// AfterFunc makes a timer of the machine's clock, whose function waits while the machine is paused, and for ever where it
// is dead.
func (m *machine) AfterFunc(d time.Duration, f func()) *timer {
	return &timer{m, time.AfterFunc(m.real(d), func() {
		m.gate()
		f()
	})}
}

type timer struct {
	m *machine
	*time.Timer
}

func (t *timer) Reset(d time.Duration) bool { return t.Timer.Reset(t.m.real(d)) }

// real returns how long a time of the machine's clock takes.
func (m *machine) real(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(float64(d)/m.speed)) + 1
}

// gate waits while the process does not run.
func (m *machine) gate() {
	for {
		m.mu.Lock()
		wait := m.resumed
		m.mu.Unlock()
		if wait == nil {
			return
		}
		select {
		case <-wait:
		case <-m.over:
			return
		}
	}
}

// sleep waits for a time of the machine's clock, or until stop.
func (m *machine) sleep(d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(m.real(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-m.over:
	}
	m.gate()
}

// pause stops the process for a time, or for ever.
func (m *machine) pause(d time.Duration, kill bool) {
	m.mu.Lock()
	if m.resumed != nil {
		m.mu.Unlock()
		return
	}
	m.resumed, m.dead = make(chan struct{}), kill
	m.paused, m.faulty = time.Now(), time.Now()
	m.mu.Unlock()
	if kill {
		return
	}
	wait(d, m.over)
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.resumed)
	m.resumed = nil
	m.paused, m.faulty = time.Now(), time.Now()
}

// disconnect cuts the machine off for a time.
func (m *machine) disconnect(d time.Duration, how cut) {
	m.mu.Lock()
	if m.healed != nil {
		m.mu.Unlock()
		return
	}
	m.healed, m.cut, m.faulty = make(chan struct{}), how, time.Now()
	m.mu.Unlock()
	wait(d, m.over)
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.healed)
	m.healed, m.faulty = nil, time.Now()
}

func wait(d time.Duration, over <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	}
}

// request has a request arrive at the engine, and then its answer at the machine.
func (m *machine) request(ctx context.Context, fences bool, there, back time.Duration, arrive func() error) error {
	m.gate()
	wait(there, m.over)
	m.mu.Lock()
	how, healed, dead := m.cut, m.healed, m.dead
	m.mu.Unlock()
	if dead || healed != nil && how == refused {
		return errAway
	}
	if healed != nil && how != answered {
		done := ctx.Done()
		if how == late {
			done = nil
		}
		select {
		case <-healed:
		case <-done:
		case <-m.over:
		}
	}
	// Without a fence a client has to keep the time itself: what is on its way for too long must not arrive.
	if (!fences || how != late) && ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case <-m.over:
		return errAway
	default:
	}
	err := arrive()
	wait(back, m.over)
	m.mu.Lock()
	lost := m.healed != nil || m.dead
	m.mu.Unlock()
	if lost {
		return errAway
	}
	m.gate()
	return err
}

// calm reports whether nothing has happened to the machine for a time.
func (m *machine) calm(d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resumed == nil && m.healed == nil && time.Since(m.faulty) > d
}

// ran reports whether the process has not been paused for a time.
func (m *machine) ran(d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resumed == nil && time.Since(m.paused) > d
}

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A ProcessInfo describes a running process, or one that has ended.
type ProcessInfo struct {
	Pid  int
	Name string // the name of the program, or "" if it is not known
}

// String returns the name and the process id, as "node (4711)".
func (p ProcessInfo) String() string {
	if p.Name == "" {
		return fmt.Sprintf("process %d", p.Pid)
	}
	return fmt.Sprintf("%s (%d)", p.Name, p.Pid)
}

// Context returns a copy of parent that is done when the host has ended, with an [*EndedError] as
// the cause. stop releases what the watch occupies; so does the end of parent.
//
// Context looks for the host before it returns, which takes a few milliseconds. Call it early: a
// launcher that starts this program and ends before the call leaves no trace of the host. If there is
// no host, or it cannot be watched, the context is a plain copy of parent; see [Of].
//
// The watch does not read stdin and signals no process. Noticing the end of stdin is still up to
// the program.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	return begin(parent, 0)
}

// ContextOf is like [Context], for a host that is named by its process id, so that nothing has to be looked for.
// The process need not be an ancestor, nor hold the other end of stdin. If there is no such process, the context is
// done at once. If pid is not above 0, it is done at once, too, and its cause says why.
func ContextOf(parent context.Context, pid int) (ctx context.Context, stop context.CancelFunc) {
	if pid > 0 {
		return begin(parent, pid)
	}
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{end: cancel, err: fmt.Errorf("host: ContextOf(%d): want the id of a process, above 0", pid)}
	cancel(w.err)
	return context.WithValue(ctx, key{}, w), func() { cancel(nil) }
}

// begin watches the host, which is looked for if pid is 0.
func begin(parent context.Context, pid int) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{end: cancel}
	ctx = context.WithValue(ctx, key{}, w)
	stop = func() { cancel(nil) }
	if ctx.Err() != nil {
		w.err = context.Cause(ctx)
		return ctx, stop
	}
	found, between, err := find(pid)
	if err != nil {
		w.err = err
		if pid != 0 && errors.Is(err, errGone) {
			named := ProcessInfo{Pid: pid}
			cancel(&EndedError{Host: named, Process: named, ExitCode: -1})
		}
		return ctx, stop
	}
	w.host = found.ProcessInfo
	w.watched = append(between, found)
	context.AfterFunc(ctx, w.close)
	go w.followHost(found)
	for _, p := range between {
		go w.followBetween(p)
	}
	return ctx, stop
}

// Of returns the host that ctx, which [Context] has returned, watches or has watched. If nothing is
// watched, the error says why, and matches [errors.ErrUnsupported] if the system offers no way to
// watch a process. Of is safe for concurrent use.
func Of(ctx context.Context) (ProcessInfo, error) {
	w, ok := ctx.Value(key{}).(*watch)
	if !ok {
		return ProcessInfo{}, errors.New("host: the context is not from host.Context")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.host, w.err
}

// errGone is the error of watching a process that has already ended.
var errGone = errors.New("host: no such process")

type key struct{}

// A watch is the state behind a context. Each system has its own process, with these methods:
//
//   - ended waits until the process has ended. It returns false if the process has been closed first.
//   - how says how the process ended. With wait it waits until the system tells.
//   - heir returns the process that has taken the place of a host that has ended, or nil.
//   - close ends the waits, and releases what the process occupies.
//
// Each system also has a function find, which returns the host, the named process if named is not 0, and the
// processes between it and this one.
type watch struct {
	end context.CancelCauseFunc

	mu      sync.Mutex
	host    ProcessInfo
	err     error // why nothing is watched
	watched []*process
	over    bool
}

// followHost ends the context when the host has ended without an heir.
func (w *watch) followHost(p *process) {
	for p.ended() {
		how := p.how(false)
		next := p.heir(how)
		if next == nil {
			w.end(&EndedError{Host: p.ProcessInfo, Process: p.ProcessInfo, Signal: how.signal, ExitCode: how.code})
			return
		}
		p.close()
		if !w.inherit(next) {
			next.close()
			return
		}
		p = next
	}
}

// inherit makes p the host. It reports false if the watch is over.
func (w *watch) inherit(p *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	w.host = p.ProcessInfo
	w.watched = append(w.watched, p)
	return true
}

// followBetween waits for the end of p, a process between the host and this one, and ends the context
// if a signal killed p. If the host was killed together with p, the error names the one whose end was
// seen first.
func (w *watch) followBetween(p *process) {
	if !p.ended() {
		return
	}
	if how := p.how(true); how.signal != nil {
		w.mu.Lock()
		host := w.host
		w.mu.Unlock()
		w.end(&EndedError{Host: host, Process: p.ProcessInfo, Signal: how.signal, ExitCode: -1})
	}
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, p := range w.watched {
		p.close()
	}
	w.watched = nil
}

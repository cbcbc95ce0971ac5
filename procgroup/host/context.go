package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// A ProcessInfo describes a running process, or one that has ended.
type ProcessInfo struct {
	Pid  int
	Name string // the name of the program, or "" if it is not known
}

// String returns the name and the process id, as "node (4711)", or "process 4711" if Name is "".
func (p ProcessInfo) String() string {
	if p.Name == "" {
		return fmt.Sprintf("process %d", p.Pid)
	}
	return fmt.Sprintf("%s (%d)", texts.Name(p.Name), p.Pid)
}

// Context returns a copy of parent that is done when the host has ended or, on Linux, when a signal has killed a
// process between the host and this one, with an [*EndedError] as the cause. A call of stop, or the end of parent,
// releases the resources of the watch.
//
// Context searches for the host before it returns, which takes a few milliseconds. Call it early: if a launcher starts
// this program and ends before the call, the host cannot be found. If there is no host, or it cannot be watched, the
// context is done only with parent or after stop; see [Of].
//
// The watch does not read stdin and signals no process. The program itself must still notice the end of stdin.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	return begin(parent, 0)
}

// ContextOf is like [Context], but watches the process with the id pid as the host. The process need not be an
// ancestor, nor hold the other end of stdin. If there is no such process, the context is done at once, with an
// [*EndedError] as the cause. If pid is 0 or less, the context is done at once, with another error as the cause.
func ContextOf(parent context.Context, pid int) (ctx context.Context, stop context.CancelFunc) {
	if pid > 0 {
		return begin(parent, pid)
	}
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{end: cancel, err: fmt.Errorf("host: ContextOf(%d): want the id of a process, above 0", pid)}
	cancel(w.err)
	return context.WithValue(ctx, key{}, w), func() { cancel(nil) }
}

// begin watches the process pid as the host. If pid is 0, it searches for the host.
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

// Of returns the host that is or was watched for ctx, a context of [Context] or [ContextOf] or derived from one. If no
// host was ever watched, the error says why. It matches [errors.ErrUnsupported] if the system offers no way to watch a
// process. Of is safe for concurrent use.
func Of(ctx context.Context) (ProcessInfo, error) {
	w, ok := ctx.Value(key{}).(*watch)
	if !ok {
		return ProcessInfo{}, errors.New("host: the context is not from host.Context")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.host, w.err
}

// errGone is the error of find and open for a process that does not exist or has ended.
var errGone = errors.New("host: no such process")

// key is the key of the watch in a context.
type key struct{}

// A watch is the state of a context of this package. The type process differs between systems, and has these methods:
//
//   - ended waits until the process has ended, and then returns true. It returns false if close is called first.
//   - how returns how the process ended. If its argument is true, how may wait until the system reports it.
//   - heir returns the process that has replaced a host that has ended, or nil.
//   - close makes ended return, and releases the resources of the process.
//
// Each system also has a function find. It returns the host, which is the process named unless named is 0, and the
// processes between the host and this one, from the parent up.
type watch struct {
	end context.CancelCauseFunc

	mu      sync.Mutex
	host    ProcessInfo
	err     error      // why no host was ever watched; nil if one was
	watched []*process // to be closed at the end of the context
	over    bool       // the context is done
}

// followHost ends the context when the host p has ended without an heir. It goes on with an heir as the host.
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

// inherit makes p the host. If the context is done, it returns false and does nothing.
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

// followBetween waits for the end of p, a process between the host and this one, and ends the context if a signal
// killed p. If the host was killed together with p, the error names the process whose end was noticed first.
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

// close closes the watched processes when the context is done.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, p := range w.watched {
		p.close()
	}
	w.watched = nil
}

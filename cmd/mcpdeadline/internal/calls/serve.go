package calls

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// NewSession returns a session, whose server the method Serve starts. name identifies the session as the owner of its
// tasks; it is "" if each request stands alone, as from protocol 2026-07-28 on. deliver must queue a message for the
// host without waiting.
func NewSession(p *Proxy, name string, deliver func(*jsonrpc.Message)) *Session {
	s := &Session{
		Proxy: p, dial: p.Dials(), name: name, Room: func() {}, Forgone: func(json.RawMessage) {},
		requests: make(map[string]*inFlight), tokens: make(map[string]*call),
		hostQuestions: make(map[string]func()), own: make(map[string]chan<- *jsonrpc.Message),
		asking: make(chan struct{}, 1), Refused: make(chan struct{}), shadowed: make(map[string]bool),
	}
	s.batches.Send, s.Deliver = deliver, s.batches.Gather
	s.waiting.room.L, s.passed.L = &s.mu, &s.mu
	s.fits.Store(&p.Profile)
	s.offer("")
	return s
}

// Bounds of the attempts to start a server again.
const (
	firstDelay = time.Second      // before the third short run in a row; doubled before each further one
	mostDelay  = 30 * time.Second // the longest delay
	lasted     = 10 * time.Second // a run of at least this length resets the delay
	mostTries  = 4                // failed attempts in a row before the proxy gives up
)

// Serve runs the session's server, and starts it again whenever it has ended, until ctx is done; then it returns nil.
// It returns an error if the server cannot be started, ends before it has sent a message, even if ctx ends too, or, unless
// it is at a URL, cannot be started again in four attempts. Before Serve returns, it ends all requests in flight with errors.
func (s *Session) Serve(ctx context.Context) error {
	short, failed := 0, 0 // in a row
	for {
		begun := time.Now()
		up, err := s.start(ctx)
		if err == nil {
			failed = 0
			select { // the end of the server wins: it says more; that of ctx is found below
			case <-up.Ended():
			case <-ctx.Done():
				select {
				case <-up.Ended():
				default:
					up.Close()
					return s.finish(nil)
				}
			}
			if err = up.Why(); s.neverHeard() {
				return s.finish(&startError{err})
			}
			s.lose("the server ended: "+err.Error(), ctx.Err() == nil)
		} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return s.finish(nil)
		} else if failed++; s.run == 0 || failed == mostTries && !s.Remote {
			return s.finish(&startError{err})
		} else if s.Remote {
			s.failWaiting("no new session with the server: " + err.Error())
		}
		s.Logger.Warn("server ended", "error", err)
		if short++; time.Since(begun) > lasted {
			short = 0
		}
		delay := time.Duration(0)
		if short > 1 {
			delay = min(firstDelay<<min(short-2, 10), mostDelay)
		}
		var asking <-chan struct{}
		if s.Remote { // a waiting request ends the delay: an attempt to connect costs no more than the request
			asking = s.asking
		}
		select {
		case <-ctx.Done():
		case <-asking:
		case <-time.After(delay):
		}
		if ctx.Err() != nil { // select may have chosen the delay, though ctx was done too
			if up != nil {
				up.Close() // a server at a URL may have a session for the next run
			}
			return s.finish(nil)
		}
	}
}

// A startError reports a server that could not be started, or ended before it had sent a message.
type startError struct{ err error }

func (e *startError) Error() string { return "cannot start the server: " + e.err.Error() }

func (e *startError) Unwrap() error { return e.err }

// neverHeard reports whether the current run is the first and has sent no message.
func (s *Session) neverHeard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run == 1 && !s.runAnswered
}

// finish ends the session and its requests in flight. Later requests are refused. err, which finish returns, is why the
// session ends, or nil.
func (s *Session) finish(err error) error {
	s.mu.Lock()
	s.over, s.end = true, err
	s.waiting.room.Broadcast()
	waits := len(s.requests) > 0
	var calls, arrived []*call
	for _, in := range s.requests {
		if in.call != nil {
			calls = append(calls, in.call)
			if in.call.serverAnswered.Load() {
				arrived = append(arrived, in.call)
			}
		}
	}
	s.mu.Unlock()
	s.lose(s.endReason(), false)
	select { // a shutdown would abort the calls whose answers have arrived
	case <-answered(arrived):
	case <-time.After(Settle):
	}
	adapter.EndSession(s.Tasks, s.name)
	if waits {
		go s.refused(calls)
	}
	return err
}

// refused waits until the lost calls have been answered by their goroutines, and closes s.Refused. serveStdio waits for
// that before it shuts down: a shutdown would abort the calls, and their answers would not say that the server has
// ended.
func (s *Session) refused(lost []*call) {
	<-answered(lost)
	s.refusing.Do(func() { close(s.Refused) })
}

// answered returns a channel that is closed when the calls have been answered by their goroutines.
func answered(calls []*call) <-chan struct{} {
	var left sync.WaitGroup
	for _, c := range calls {
		left.Add(1)
		c.leave(left.Done)
	}
	all := make(chan struct{})
	go func() {
		left.Wait()
		close(all)
	}()
	return all
}

// lose fails the requests that a run had when it ended, with the text why, and cancels the run's requests to the host.
// again says that another run will follow; the messages that are queued for it then stay.
func (s *Session) lose(why string, again bool) {
	s.mu.Lock()
	s.up, s.ready, s.doubt = nil, false, nil // from here on, messages wait for the next run
	for s.passing > 0 {                      // the run may still return requests
		s.passed.Wait()
	}
	if !again {
		s.waiting.take()
	}
	waits := make(map[string]bool)
	for _, m := range s.waiting.messages {
		if m.IsRequest() {
			waits[string(m.ID)] = true
		}
	}
	lost := make(map[string]*inFlight)
	for id, in := range s.requests {
		if waits[id] || in.cancelLocal != nil {
			continue
		}
		if lost[id] = in; in.call == nil {
			s.conclude(id, in, false)
		}
	}
	hostEnded := s.over && s.end == nil
	s.mu.Unlock()

	for _, in := range lost {
		if in.call != nil && hostEnded && !in.call.serverAnswered.Load() { // the same error as from Shutdown, which may run at the same time
			in.call.cancel(toolcall.ErrShutdown)
			in.call.lose(toolcall.ErrShutdown)
		}
	}
	more := ""
	if again {
		more = "\nIt is being restarted. The call was not repeated, and may have had an effect."
	}
	s.fail(lost, why, more)
	s.cancelQuestions()
}

// fail answers requests with an error whose text is why, and for a call why and more.
func (s *Session) fail(lost map[string]*inFlight, why, more string) {
	for id, in := range lost {
		if in.call == nil {
			s.Deliver(jsonrpc.Failure(json.RawMessage(id), why))
		} else {
			in.call.lose(errors.New(why + more))
		}
	}
}

// failWaiting removes the queued requests and answers them with an error.
func (s *Session) failWaiting(why string) {
	s.mu.Lock()
	select {
	case <-s.asking:
	default:
	}
	failed := make(map[string]*inFlight)
	s.waiting.remove(func(m *jsonrpc.Message) bool {
		id := string(m.ID)
		in := s.requests[id]
		if !m.IsRequest() || in == nil {
			return m.IsRequest()
		}
		if failed[id] = in; in.call == nil {
			s.conclude(id, in, false)
		}
		return true
	})
	s.mu.Unlock()
	s.fail(failed, why, "")
}

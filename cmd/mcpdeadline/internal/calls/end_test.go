package calls_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A server that ends before it has sent a message is an error that says why, even if the host ends at the same instant.
// SPEC 16.7.
func TestNotStartedAtTheEnd(t *testing.T) {
	for range 50 {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		s := newSession(func(_ int, r *run) { close(r.over) }, func(*jsonrpc.Message) {})
		if err := s.Serve(ctx); err == nil || !strings.Contains(err.Error(), "cannot start the server: forgotten") {
			t.Fatalf("error %v", err)
		}
	}
}

// A server that ends as its host does is not started again, and no answer says so. SPEC 16.7.
func TestServerEndsWithTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string, 10)
		var last *run
		s := newSession(func(_ int, r *run) { last = r }, func(m *jsonrpc.Message) { answers <- string(m.Raw) })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Serve(ctx) }()
		s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)))
		<-answers
		last.send, last.asked = func(*run, *jsonrpc.Message) {}, stop
		s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)))
		s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}`)))
		synctest.Wait()
		close(last.over)
		if err := <-ended; err != nil || last.number != 1 {
			t.Errorf("error %v after run %d", err, last.number)
		}
		for range 2 {
			if m := <-answers; strings.Contains(m, "restarted") {
				t.Errorf("answer %s", m)
			}
		}
	})
}

// A host that ends while the server is started again has ended the session, and no error says that the server cannot be
// started, even at the last attempt.
func TestHostEndsAtTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int64
		s := newSession(func(number int, r *run) {
			started.Store(int64(number))
			r.send = func(r *run, m *jsonrpc.Message) {
				switch {
				case m.Method != "initialize":
				case number == 1:
					r.answer(m)
					time.AfterFunc(time.Second, func() { close(r.over) })
				case number < 5:
					go r.Message(jsonrpc.Failure(m.ID, "not now"))
				}
			}
		}, func(*jsonrpc.Message) {})
		s.Remote = false
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Serve(ctx) }()
		s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)))
		for started.Load() < 5 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// An answer that arrives while the server is closed is forwarded, because the host may still read after it has closed
// stdin. SPEC 3.7 and 16.7.
func TestAnsweredAtTheEnd(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			answers := make(chan string, 10)
			var last *run
			s := newSession(func(_ int, r *run) { last = r }, func(m *jsonrpc.Message) { answers <- string(m.Raw) })
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				err := s.Serve(ctx)
				s.Shutdown(0)
				ended <- err
			}()
			s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)))
			<-answers
			last.send = func(*run, *jsonrpc.Message) {}
			last.close = func() {
				last.Message(jsonrpc.Result([]byte("2"), map[string]any{}))
				close(last.over)
			}
			s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`)))
			synctest.Wait()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if m := <-answers; m != `{"id":2,"jsonrpc":"2.0","result":{}}` {
				t.Errorf("answer %s", m)
			}
		})
	}
}

// Refused is closed when the requests have been answered that waited for a server which did not start, so that the
// program ends at once.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string, 10)
		s := newSession(func(_ int, r *run) {
			r.send = func(r *run, m *jsonrpc.Message) { close(r.over) }
		}, func(m *jsonrpc.Message) { answers <- string(m.Raw) })
		ended := make(chan error)
		go func() { ended <- s.Serve(t.Context()) }()
		s.FromHost(jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)))
		begun := time.Now()
		if err := <-ended; err == nil {
			t.Error("no error")
		}
		<-s.Refused
		if m := <-answers; !strings.Contains(m, "cannot start the server: forgotten") || time.Since(begun) != 0 {
			t.Errorf("after %v: %s", time.Since(begun), m)
		}
	})
}

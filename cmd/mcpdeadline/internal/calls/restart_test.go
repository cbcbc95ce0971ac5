package calls_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A run is a run of a simulated server. It answers requests, or returns them to the session.
type run struct {
	server.Receiver
	number  int
	send    func(r *run, m *jsonrpc.Message)
	over    chan struct{}
	asked   func() // called when the session asks why the run has ended; may be nil
	returns int
	group   server.Observable // may be nil
	close   func()            // called by Close; may be nil
}

func (r *run) Send(m *jsonrpc.Message) { r.send(r, m) }

func (r *run) answer(m *jsonrpc.Message) {
	if m.IsRequest() {
		go r.Message(jsonrpc.Result(m.ID, map[string]any{"run": r.number}))
	}
}

// unsend returns a request to the session, as a run does that has ended.
func (r *run) unsend(m *jsonrpc.Message) {
	if r.returns++; r.returns < 100 && m.IsRequest() { // then it drops requests, so that a session that spins does not for ever
		r.Unsent(m)
	}
}

func (r *run) Why() error {
	if r.asked != nil {
		r.asked()
	}
	return errors.New("forgotten")
}

func (r *run) Close() {
	if r.close != nil {
		r.close()
	}
}

func (*run) Await()                         {}
func (*run) Kill(error)                     {}
func (r *run) Ended() <-chan struct{}       { return r.over }
func (r *run) Processes() server.Observable { return r.group }

// A host is the host of a session.
type host struct {
	*calls.Session
	mu      sync.Mutex
	answers map[string]string // result or error, by id
}

// newSession returns a session with a server at a URL, whose server begin sets up for each run.
func newSession(begin func(number int, r *run), deliver func(*jsonrpc.Message)) *calls.Session {
	number := 0
	return calls.NewSession(&calls.Proxy{
		Profile: calls.Profile{Limits: new(toolcall.Settings)}, Tasks: new(task.Tasks), Drain: new(toolcall.Drain),
		Remote: true, Max: 1 << 20, Logger: slog.New(slog.DiscardHandler), Stderr: io.Discard,
		Known: func(string, string) *calls.Profile { return nil },
		Dials: func() server.Dialer {
			return func(r server.Receiver) (server.Run, error) {
				number++
				next := &run{Receiver: r, number: number, over: make(chan struct{})}
				next.send = (*run).answer
				begin(number, next)
				return next, nil
			}
		},
	}, "", deliver)
}

// newHost starts a session, whose server begin sets up for each run, and initializes it.
func newHost(t *testing.T, begin func(number int, r *run)) *host {
	h := &host{answers: make(map[string]string)}
	h.Session = newSession(begin, func(m *jsonrpc.Message) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers[string(m.ID)] += string(m.Result) + string(m.Error)
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	synctest.Wait()
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

func (h *host) send(line string) { h.FromHost(jsonrpc.Parse([]byte(line))) }

func (h *host) answer(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers[id]
}

// A run at a URL may end while the session sends it a request, or those that have waited for it. The run returns them,
// and the session keeps them for the next run. It neither loses a request nor sends it to the same run again. SPEC 16.8.
func TestReturnedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []*run
		h := newHost(t, func(number int, r *run) {
			if runs = append(runs, r); number == 2 {
				r.send = func(r *run, m *jsonrpc.Message) {
					if m.Method == "initialize" {
						r.answer(m)
						return
					}
					r.unsend(m)
				}
			}
		})
		ask := func(id string) { h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"prompts/list"}`) }
		runs[0].send = (*run).unsend
		close(runs[0].over)
		for _, id := range []string{"2", "3", "4"} {
			ask(id)
		}
		synctest.Wait()
		if runs[1].returns > 5 {
			t.Errorf("the session has sent its messages to the same run %d times", runs[1].returns)
		}
		close(runs[1].over)
		synctest.Wait()
		runs[2].send = func(r *run, m *jsonrpc.Message) {
			close(r.over)
			time.Sleep(time.Minute) // nothing else can happen before it is returned
			r.unsend(m)
		}
		ask("5")
		synctest.Wait()
		for id, want := range map[string]string{"2": `{"run":3}`, "3": `{"run":3}`, "4": `{"run":3}`, "5": `{"run":4}`} {
			if got := h.answer(id); got != want {
				t.Errorf("answer to %s: %s, want %s", id, got, want)
			}
		}
	})
}

// A session that the host begins anew while no run is ready is begun once at the next run. SPEC 16.8.
func TestInitializedWhileNoRunIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var first *run
		h := newHost(t, func(number int, r *run) {
			if first == nil {
				first = r
				return
			}
			r.send = func(r *run, m *jsonrpc.Message) {
				got = append(got, m.Method+string(m.ID))
				r.answer(m)
			}
		})
		first.send = (*run).unsend
		close(first.over)
		h.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		synctest.Wait()
		if d := cmp.Diff([]string{"initialize2"}, got); d != "" {
			t.Error(d)
		}
		if h.answer("2") != `{"run":2}` {
			t.Error(h.answer("2"))
		}
	})
}

// An answer that has arrived is forwarded, even if the server has ended before the call has read it. SPEC 16.7.
func TestAnsweredBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(_ int, r *run) {
			r.send = func(r *run, m *jsonrpc.Message) {
				if m.IsRequest() {
					r.Message(jsonrpc.Result(m.ID, map[string]any{}))
				}
				if m.Method == "tools/call" {
					close(r.over)
				}
			}
		})
		for id := range 100 {
			h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`, id))
			synctest.Wait()
			if got := h.answer(fmt.Sprint(id)); got != "{}" {
				t.Fatalf("answer to call %d: %s", id, got)
			}
			time.Sleep(time.Minute) // another run has begun
		}
	})
}

// A ping that the session sends to a run that has just ended comes back when the next run begins. That run gets the
// requests that have waited for it. SPEC 16.8.
func TestLatePing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(number int, r *run) {
			r.send = func(r *run, m *jsonrpc.Message) {
				switch {
				case number == 1 && m.Method == "ping":
					close(r.over)
					time.Sleep(time.Second)
					r.unsend(m)
				case number == 1 && m.Method == "tools/call":
				case number == 2 && m.Method == "initialize":
					time.AfterFunc(2*time.Second, func() { r.answer(m) })
				default:
					r.answer(m)
				}
			}
		})
		h.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`)
		synctest.Wait() // a call that has begun is cancelled with a ping
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`)
		time.Sleep(10 * time.Second)
		if got := h.answer("3"); got != `{"run":2}` {
			t.Errorf("answer %q", got)
		}
	})
}

// A server is told which limit has stopped a call.
func TestServerGetsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		h := newHost(t, func(_ int, r *run) {
			r.send = func(r *run, m *jsonrpc.Message) {
				switch m.Method {
				case "initialize", "ping":
					r.answer(m)
				case "notifications/cancelled":
					got <- string(m.Params)
				}
			}
		})
		h.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
		if reason := <-got; !strings.Contains(reason, "idle timeout") {
			t.Error(reason)
		}
		synctest.Wait() // the session has the answer to its ping
	})
}

// A request that the host cancels while a run is sent those that have waited for it is not sent behind its cancellation.
// SPEC 3.11.
func TestCancelledAsTheRunIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var second []string
		var first *run
		h := newHost(t, func(number int, r *run) {
			if number == 1 {
				first = r
				return
			}
			r.send = func(r *run, m *jsonrpc.Message) {
				mu.Lock()
				second = append(second, string(m.ID))
				mu.Unlock()
				if string(m.ID) == "2" {
					time.Sleep(time.Second)
				}
				if m.Method == "initialize" {
					time.Sleep(time.Second)
				}
				r.answer(m)
			}
		})
		close(first.over)
		synctest.Wait()
		for _, id := range []string{"2", "3", "4"} {
			h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"a"}}`)
			h.send(`{"jsonrpc":"2.0","id":1` + id + `,"method":"prompts/list"}`)
		}
		time.Sleep(time.Second + time.Millisecond) // the run is sent 2
		for _, id := range []string{"3", "14"} {
			h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for _, id := range []string{"3", "14"} {
			if slices.Contains(second, id) {
				t.Errorf("the run has got the cancelled request %s", id)
			}
		}
		if !slices.Contains(second, "13") || h.answer("4") != `{"run":2}` {
			t.Errorf("the run has got %s", second)
		}
	})
}

package calls_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

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
	returns int
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

func (*run) Await()                       {}
func (*run) Close()                       {}
func (*run) Kill(error)                   {}
func (r *run) Ended() <-chan struct{}     { return r.over }
func (*run) Why() error                   { return errors.New("forgotten") }
func (*run) Processes() server.Observable { return nil }

// A run at a URL may end while the session sends it the requests that have waited for it. The run returns them, and
// the session keeps them for the next run. It neither loses a request nor sends it to the same run again. SPEC 16.8.
func TestReturnedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []*run
		dial := func(r server.Receiver) (server.Run, error) {
			next := &run{Receiver: r, number: len(runs) + 1, over: make(chan struct{})}
			next.send = (*run).answer
			if next.number == 2 {
				next.send = func(r *run, m *jsonrpc.Message) {
					if m.Method == "initialize" {
						r.answer(m)
						return
					}
					r.unsend(m)
				}
			}
			runs = append(runs, next)
			return next, nil
		}
		var mu sync.Mutex
		answers := make(map[string]string)
		s := calls.NewSession(&calls.Proxy{
			Profile: calls.Profile{Limits: new(toolcall.Settings)}, Tasks: new(task.Tasks), Drain: new(toolcall.Drain),
			Remote: true, Max: 1 << 20, Logger: slog.New(slog.DiscardHandler), Stderr: io.Discard,
			Known: func(string, string) *calls.Profile { return nil },
			Dials: func() server.Dialer { return dial },
		}, "", func(m *jsonrpc.Message) {
			mu.Lock()
			defer mu.Unlock()
			answers[string(m.ID)] += string(m.Result)
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Serve(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		host := func(line string) { s.FromHost(jsonrpc.Parse([]byte(line))) }
		host(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		synctest.Wait()
		host(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

		runs[0].send = (*run).unsend // forgotten
		close(runs[0].over)
		for _, id := range []string{"2", "3", "4"} {
			host(`{"jsonrpc":"2.0","id":` + id + `,"method":"prompts/list"}`)
		}
		synctest.Wait()
		if runs[1].returns > 5 {
			t.Errorf("the session has sent its messages to the same run %d times", runs[1].returns)
		}
		close(runs[1].over)
		synctest.Wait()
		host(`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[string]string{"1": `{"run":1}`, "2": `{"run":3}`, "3": `{"run":3}`, "4": `{"run":3}`, "5": `{"run":3}`}
		if diff := cmp.Diff(want, answers); diff != "" {
			t.Error(diff)
		}
	})
}

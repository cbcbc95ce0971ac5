package calls_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A group is the processes of a simulated server. It takes as long to look at them.
type group time.Duration

func (group) Attend(context.Context) {}

func (g group) Observe(context.Context, procgroup.Activity) (server.Observer, error) { return g, nil }

func (g group) Tree() procgroup.ProcessList {
	time.Sleep(time.Duration(g))
	return procgroup.ProcessList{}
}

func (group) Stop() {}

// A request that the host sends after a run has ended, while the session sends that run the requests that waited for the
// end of a doubt, waits for the next run. SPEC 16.4.
func TestAskedAfterTheEndOfADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *run
		h := newHost(t, func(number int, r *run) {
			r.group = group(0)
			if number > 1 {
				return
			}
			first = r
			r.send = func(r *run, m *jsonrpc.Message) {
				switch {
				case m.Method == "initialize":
					r.answer(m)
				case m.Method == "prompts/list": // the run ends while it is sent the request
					close(r.over)
					time.Sleep(time.Second)
				}
			}
		})
		h.Remote, h.Ping = false, time.Minute
		h.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`)
		first.Message(jsonrpc.Notification("notifications/message", nil)) // ends the doubt
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","id":4,"method":"resources/list"}`)
		time.Sleep(time.Minute)
		if got := h.answer("3"); got != `{"code":-32603,"message":"the server ended: forgotten"}` {
			t.Errorf("answer to the request that the run has got: %s", got)
		}
		if got := h.answer("4"); got != `{"run":2}` {
			t.Errorf("answer to the later request: %s", got)
		}
	})
}

// A run that begins while a call of the run before is being stopped is not in doubt: it may take as long to begin as any
// other. SPEC 16.4.
func TestStoppedAsTheServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *run
		var mu sync.Mutex
		var second []string // the methods of the messages that it has got
		h := newHost(t, func(number int, r *run) {
			r.group = group(5 * time.Second)
			if number == 1 {
				first = r
				return
			}
			r.send = func(r *run, m *jsonrpc.Message) {
				mu.Lock()
				defer mu.Unlock()
				second = append(second, m.Method)
				if m.Method == "initialize" {
					time.AfterFunc(20*time.Second, func() { r.answer(m) })
				}
			}
		})
		h.Remote, h.Ping, h.Alive.Work.CPU = false, time.Second, true
		first.send = func(*run, *jsonrpc.Message) {}
		h.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`)
		time.Sleep(timeout.Default().Idle + time.Second) // the processes are looked at
		close(first.over)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]string{"initialize", "notifications/initialized"}, second); diff != "" {
			t.Error(diff)
		}
	})
}

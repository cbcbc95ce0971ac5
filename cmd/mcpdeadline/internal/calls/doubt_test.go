package calls_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// A group is the processes of a simulated server, whose work cannot be observed.
type group struct{}

func (group) Attend(context.Context) {}

func (group) Observe(context.Context, procgroup.Activity) (server.Observer, error) {
	return nil, errors.New("not observed")
}

// A request that the host sends after a run has ended, while the session sends that run the requests that waited for the
// end of a doubt, waits for the next run. SPEC 16.4.
func TestAskedAfterTheEndOfADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *run
		h := newHost(t, func(number int, r *run) {
			r.group = group{}
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

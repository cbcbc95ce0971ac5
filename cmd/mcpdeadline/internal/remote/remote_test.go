package remote_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/remote"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

type countedBody struct {
	io.Reader
	close func()
}

func (b countedBody) Close() error { b.close(); return nil }

// A stream that is resumed again and again is one open response at a time.
func TestResumedStreamsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		resumed := 0
		answered := make(chan *jsonrpc.Message, 1)
		to, _ := url.Parse("http://server.test/mcp")
		run, err := remote.Dial(roundTripper(func(r *http.Request) *http.Response {
			if n := open.Add(1); n > 1 {
				t.Errorf("%d responses are open", n)
			}
			body := "id: 1\ndata: {}\n\n"
			if resumed++; resumed == 5 {
				body = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
				Body: countedBody{strings.NewReader(body), sync.OnceFunc(func() { open.Add(-1) })},
			}
		}), to, nil, 1<<20)()(server.Receiver{Message: func(m *jsonrpc.Message) { answered <- m }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		run.Send(jsonrpc.Request([]byte("1"), "tools/call", nil))
		if m := <-answered; m.Result == nil {
			t.Error(string(m.Raw))
		}
		synctest.Wait()
		run.Close()
		<-run.Ended()
		if n := open.Load(); n != 0 {
			t.Errorf("%d responses are open", n)
		}
	})
}

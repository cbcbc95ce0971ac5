package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Script is a server without an SDK, so that it can behave in ways in which an SDK does not.
type Script struct {
	t       testing.TB
	handle  func(r *Asked)
	begun   time.Time
	in, out *Pipe
	extras  object   // additional capabilities
	tools   []object // the answer to tools/list; nil means that handle answers it
	mute    bool     // the server answers nothing
	running sync.WaitGroup
	mu      sync.Mutex
	seen    []Message // all messages received
}

// An Asked is a request or a notification that a Script has received.
type Asked struct {
	Message
	sc        *Script
	cancelled chan struct{} // closed when the client cancels the request, or the connection ends
}

// token returns the progress token in JSON, or "" if there is none.
func (r *Asked) token() string {
	var p struct {
		Params struct {
			Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
		}
	}
	_ = json.Unmarshal(r.Raw, &p)
	return string(p.Params.Meta.ProgressToken)
}

func (r *Asked) name() string { name, _ := r.Params["name"].(string); return name }

func (sc *Script) send(text string, args ...any) { _, _ = fmt.Fprintf(sc.out, text+"\n", args...) }

func (r *Asked) answer(result string) {
	if strings.HasPrefix(result, "{") && !strings.Contains(result, "resultType") {
		result = `{"resultType":"complete",` + strings.TrimPrefix(result, "{")
		result = strings.Replace(result, ",}", "}", 1)
	}
	r.sc.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

func (r *Asked) fault(code int, message string) {
	r.sc.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, message)
}

// progress sends a progress notification for the request, if it has a token.
func (r *Asked) progress(value float64, message string) {
	if token := r.token(); token != "" {
		r.sc.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%v,"message":%q}}`, token, value, message)
	}
}

// until waits until the given time after the arrival of the request. It returns false at once if the client has
// cancelled the request.
func (r *Asked) until(after time.Duration) bool {
	select {
	case <-r.cancelled:
		return false
	case <-time.After(after - (time.Since(r.sc.begun) - r.At)):
		return true
	}
}

// heard returns the messages of a method that have arrived.
func (sc *Script) heard(method string) []Message {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return ofMethod(sc.seen, method)
}

// dial starts the script, and connects a new client to it, until the test ends. handle is called with each message that
// is not part of the handshake.
func (sc *Script) dial(t testing.TB, sdk SDK, c ClientConfig, handle func(r *Asked)) Client {
	t.Helper()
	client := sdk.NewClient(c)
	in, out := sc.serve(t, handle)
	if err := client.Connect(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		sc.end()
		time.Sleep(time.Hour)
	})
	return client
}

// serve starts the script, and returns the pipes from which the client reads and to which it writes.
func (sc *Script) serve(t testing.TB, handle func(r *Asked)) (in, out *Pipe) {
	sc.t, sc.handle, sc.begun, sc.in, sc.out = t, handle, time.Now(), NewPipe(), NewPipe()
	waiting := make(map[string]chan struct{})
	sc.running.Go(func() {
		eachLine(sc.in, func(line []byte) {
			r := &Asked{sc: sc, cancelled: make(chan struct{})}
			if err := json.Unmarshal(line, &r.Message); err != nil {
				t.Errorf("%v: %s", err, line)
				return
			}
			r.Raw, r.At = slices.Clone(line), time.Since(sc.begun)
			sc.mu.Lock()
			sc.seen = append(sc.seen, r.Message)
			sc.mu.Unlock()
			if r.Method == "notifications/cancelled" {
				id, _ := json.Marshal(r.Params["requestId"])
				if c := waiting[string(id)]; c != nil {
					delete(waiting, string(id))
					close(c)
				}
			} else if len(r.ID) > 0 {
				waiting[string(r.ID)] = r.cancelled
			}
			sc.running.Go(func() { sc.step(r) })
		})
		for _, c := range waiting {
			close(c)
		}
	})
	return sc.out, sc.in
}

func (sc *Script) step(r *Asked) {
	// Locking mu orders the memory accesses of handlers that run one after the other, for the race detector.
	turn := func() { sc.mu.Lock(); defer sc.mu.Unlock() }
	turn()
	defer turn()
	if sc.mute {
		return
	}
	capabilities := object{"tools": object{"listChanged": true}}
	maps.Copy(capabilities, sc.extras)
	said, _ := json.Marshal(capabilities)
	switch r.Method {
	case "initialize":
		r.answer(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"wire","version":"v1"}}`, Old, said))
	case "server/discover":
		r.answer(fmt.Sprintf(`{"supportedVersions":[%q],"capabilities":%s,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"wire","version":"v1"}},"serverInfo":{"name":"wire","version":"v1"}}`, New, said))
	case "notifications/initialized", "subscriptions/listen":
	default:
		if r.Method == "tools/list" && sc.tools != nil {
			tools, _ := json.Marshal(sc.tools)
			r.answer(fmt.Sprintf(`{"tools":%s,"ttlMs":0,"cacheScope":"private"}`, tools))
			return
		}
		sc.handle(r)
	}
}

// end closes the connection, and waits for the goroutines of the script.
func (sc *Script) end() {
	_, _ = sc.in.Close(), sc.out.Close()
	sc.running.Wait()
}

package mcpsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A teller is a server's connection on which it says how its task is. The SDK has nothing to do that with.
type teller struct {
	mcp.Transport
	ttl   string // in place of null
	away  bool   // the first tasks/result is answered by a server whose store is
	start time.Time

	mu    sync.Mutex
	fetch jsonrpc.ID // of that
	conn  mcp.Connection
	id    string
	polls []time.Duration // when
}

type tellingConn struct {
	mcp.Connection
	t *teller
}

func (t *teller) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	t.conn = c
	return tellingConn{c, t}, err
}

func (c tellingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok {
		c.t.mu.Lock()
		defer c.t.mu.Unlock()
		switch {
		case r.Method == "tasks/get":
			c.t.polls = append(c.t.polls, time.Since(c.t.start))
		case r.Method == "tasks/result" && !c.t.fetch.IsValid():
			c.t.fetch = r.ID
		}
	}
	return m, err
}

func (c tellingConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		if c.t.ttl != "" {
			r.Result = bytes.Replace(r.Result, []byte(`"ttl":null`), []byte(`"ttl":`+c.t.ttl), 1)
		}
		c.t.mu.Lock()
		if c.t.away && r.ID == c.t.fetch {
			r.Result, r.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "no store"}
		}
		c.t.mu.Unlock()
		var handle struct {
			Task struct {
				ID string `json:"taskId"`
			} `json:"task"`
		}
		if json.Unmarshal(r.Result, &handle) == nil && handle.Task.ID != "" {
			c.t.mu.Lock()
			c.t.id = handle.Task.ID
			c.t.mu.Unlock()
		}
	}
	return c.Connection.Write(ctx, m)
}

func statusNotification(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"statusMessage":"by a person","createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":null,"pollInterval":10000}`, id, status)
}

// say says a status after a time.
func (t *teller) say(after time.Duration, status string) {
	time.AfterFunc(after, func() {
		t.mu.Lock()
		id := t.id
		t.mu.Unlock()
		if other, ok := strings.CutPrefix(status, "other "); ok {
			id, status = "another", other
		}
		params := statusNotification(id, status)
		if status == "nonsense" {
			params = `[]`
		}
		_ = t.conn.Write(context.Background(), &jsonrpc.Request{Method: "notifications/tasks/status", Params: json.RawMessage(params)})
	})
}

// SPEC 11.9: notifications are taken for polls where they come; where they do not, the server is asked at its
// interval, and before its ttl ends.
func TestFollowTasksStatus(t *testing.T) {
	const s = time.Second
	type said map[time.Duration]string
	for _, tc := range []struct {
		name  string
		takes time.Duration
		said  said
		ttl   string
		after time.Duration // the result
		polls []time.Duration
		err   error
	}{
		{"nothing", 3 * s, nil, "", 10 * s, []time.Duration{10 * s}, nil},
		{"the end", 3 * s, said{3*s + 1: "completed"}, "", 3*s + 1, nil, nil},
		{"a failure", 3 * s, said{3*s + 1: "failed"}, "", 3*s + 1, nil, nil},
		{"all along", 25 * s, said{4 * s: "working", 8 * s: "working", 17 * s: "working", 25*s + 1: "completed"}, "", 25*s + 1, nil, nil},
		{"too early", 3 * s, said{s: "completed"}, "", 3 * s, nil, nil}, // its result is waited for
		{"and then nothing", 12 * s, said{4 * s: "working", 8 * s: "working"}, "", 18 * s, []time.Duration{18 * s}, nil},
		{"of another task", 3 * s, said{3*s + 1: "other completed"}, "", 10 * s, []time.Duration{10 * s}, nil},
		{"nonsense", 3 * s, said{3*s + 1: "nonsense", 3*s + 2: "gone"}, "", 10 * s, []time.Duration{10 * s}, nil},
		{"somebody's cancel", 12 * s, said{3 * s: "cancelled"}, "", 3 * s, nil, task.ErrCancelled},
		{"while the store is away", 3 * s, said{3*s + 1: "completed", 4 * s: "completed", 5 * s: "completed"}, "", 13*s + 1, []time.Duration{13*s + 1}, nil},
		{"a ttl below the interval", 7*s - 1, nil, "8000", 7 * s, []time.Duration{4 * s, 6 * s, 7 * s}, nil},
		{"a ttl that is over", 15 * s, nil, "1600", 21600 * ms, []time.Duration{800 * ms, 1200 * ms, 1400 * ms, 1500 * ms, 1550 * ms, 1600 * ms, 11600 * ms, 21600 * ms}, nil},
		{"a long ttl", 3 * s, nil, "60000", 10 * s, []time.Duration{10 * s}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := task.New(task.WithPoll(10 * s))
				server := newTaskServer(t, mcpsdk.WithTasks(tasks))
				defer tasks.Close()
				in, out := mcp.NewInMemoryTransports()
				tell := &teller{Transport: in, ttl: tc.ttl, away: tc.name == "while the store is away"}
				ss, err := server.server().Connect(t.Context(), mcpsdk.WrapTransport(tell), nil)
				if err != nil {
					t.Fatal(err)
				}
				cs := followingLegacy(t, out, nil)
				if _, err := cs.ListTools(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				tell.start = time.Now()
				time.AfterFunc(tc.takes, func() {
					select {
					case server.gate <- struct{}{}:
					case <-t.Context().Done():
					}
				})
				for after, status := range tc.said {
					tell.say(after, status)
				}
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"})
				if got := time.Since(tell.start); got != tc.after || !errors.Is(err, tc.err) || err == nil && texts(res)[0] != "through" {
					t.Errorf("%v, %v after %v", res, err, got)
				}
				if tc.err != nil && err != nil && err.Error() != "the task was cancelled: by a person" {
					t.Error(err)
				}
				if d := cmp.Diff(tc.polls, tell.polls); d != "" {
					t.Errorf("polls: -want +got:\n%s", d)
				}
				_ = cs.Close()
				_ = ss.Wait()
			})
		})
	}
}

// SPEC 11.9: over HTTP they come on the stream of notifications.
func TestFollowTasksStatusOverHTTP(t *testing.T) {
	t.Parallel()
	tasks := task.New(task.WithPoll(time.Hour))
	s := newTaskServer(t, mcpsdk.WithTasks(tasks))
	t.Cleanup(func() { _ = tasks.Close() })
	h := shared(t, s, mcp.StreamableHTTPOptions{})
	ids := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			h.ServeHTTP(&finding{w, ids}, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case id := <-ids:
			s.gate <- struct{}{}
			for r.Context().Err() == nil { // the first one may overtake the handle, on its other stream
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":%s}\n\n", statusNotification(id, "completed"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(100 * ms)
			}
		case <-r.Context().Done():
		}
	}))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		web.CloseClientConnections()
		client.CloseIdleConnections()
		web.Close()
	})
	cs := followingLegacy(t, &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: client, MaxRetries: -1}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // the first poll is after 30 s
	defer cancel()
	res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "gated"})
	if err != nil || texts(res)[0] != "through" {
		t.Errorf("%v, %v", res, err)
	}
}

// finding finds the id of a task in a response.
type finding struct {
	http.ResponseWriter
	ids chan<- string
}

func (f *finding) Write(p []byte) (int, error) {
	_, rest, ok := bytes.Cut(p, []byte(`"taskId":"`))
	n, err := f.ResponseWriter.Write(p)
	if id, _, _ := bytes.Cut(rest, []byte(`"`)); ok {
		f.Flush()
		select {
		case f.ids <- string(id):
		default:
		}
	}
	return n, err
}

func (f *finding) Flush() { _ = http.NewResponseController(f.ResponseWriter).Flush() }

package sdktest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/gateway"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// followStatus tests SPEC 11.9: status notifications replace polls. Without them, the client polls at the interval of
// the server, and before the ttl ends.
func followStatus(t *testing.T, sdk SDK) {
	type said map[time.Duration]string
	// over has the times of the polls for a ttl of 1.6 s: each wait is half of what is left of the ttl, but at least
	// MinPoll. After the ttl the waits are the interval.
	var over []time.Duration
	for at := time.Duration(0); at < 15*s; over = append(over, at) {
		if at += 10 * s; at-10*s < 1600*ms {
			at += max((1600*ms-at+10*s)/2, sdk.MinPoll) - 10*s
		}
	}
	for _, tc := range []struct {
		name  string
		takes time.Duration   // when the task completes
		said  said            // the notifications of the server, by time
		ttl   string          // in JSON
		after time.Duration   // when the call must return
		polls []time.Duration // the times of the polls
		fails string          // a part of the error; "" means no error
	}{
		{"nothing", 3 * s, nil, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"the end", 3 * s, said{3*s + 1: "completed"}, "null", 3*s + 1, nil, ""},
		{"a failure", 3 * s, said{3*s + 1: "failed"}, "null", 3*s + 1, nil, ""},
		{"all along", 25 * s, said{4 * s: "working", 8 * s: "working", 17 * s: "working", 25*s + 1: "completed"}, "null", 25*s + 1, nil, ""},
		{"too early", 3 * s, said{s: "completed"}, "null", 3 * s, nil, ""}, // tasks/result waits for the end
		{"and then nothing", 12 * s, said{4 * s: "working", 8 * s: "working"}, "null", 18 * s, []time.Duration{18 * s}, ""},
		{"of another task", 3 * s, said{3*s + 1: "other completed"}, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"nonsense", 3 * s, said{3*s + 1: "nonsense", 3*s + 2: "gone"}, "null", 10 * s, []time.Duration{10 * s}, ""},
		{"somebody's cancel", 12 * s, said{3 * s: "cancelled"}, "null", 3 * s, nil, "the task was cancelled"},
		{"while the store is away", 3 * s, said{3*s + 1: "completed", 4 * s: "completed", 5 * s: "completed"}, "null", 13*s + 1, []time.Duration{13*s + 1}, ""},
		{"a ttl below the interval", 7*s - 1, nil, "8000", 7 * s, []time.Duration{4 * s, 6 * s, 7 * s}, ""},
		{"a ttl that is over", 15 * s, nil, "1600", over[len(over)-1], over, ""},
		{"a long ttl", 3 * s, nil, "60000", 10 * s, []time.Duration{10 * s}, ""},
	} {
		Bubble(t, tc.name, func(t *testing.T) {
			sc := &Script{extras: object{"tasks": object{"requests": object{"tools": object{"call": object{}}}}},
				tools: []object{{"name": "build", "inputSchema": object{"type": "object"}, "execution": object{"taskSupport": "optional"}}}}
			var polls []time.Duration
			var begun time.Time
			away := tc.name == "while the store is away"
			view := func(id, status string) string {
				return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2000-01-01T00:00:00Z","lastUpdatedAt":"2000-01-01T00:00:00Z","ttl":%s,"pollInterval":10000}`, id, status, tc.ttl)
			}
			c := sc.dial(t, sdk, ClientConfig{Follow: true, Version: Old}, func(r *Asked) {
				switch r.Method {
				case "tools/call":
					r.answer(`{"task":` + view("t", "working") + `}`)
				case "tasks/get":
					if polls = append(polls, time.Since(begun)); time.Since(begun) < tc.takes {
						r.answer(view("t", "working"))
					} else {
						r.answer(view("t", "completed"))
					}
				case "tasks/result":
					if away {
						away = false
						r.fault(-32603, "no store")
						return
					}
					time.Sleep(tc.takes - time.Since(begun))
					r.answer(`{"content":[{"type":"text","text":"through"}]}`)
				}
			})
			if _, err := c.Request(t.Context(), "tools/list"); err != nil {
				t.Fatal(err)
			}
			begun = time.Now()
			for after, status := range tc.said {
				time.AfterFunc(after, func() {
					text := view("t", status)
					if other, ok := strings.CutPrefix(status, "other "); ok {
						text = view("another", other)
					} else if status == "nonsense" {
						text = `{"taskId":1}`
					}
					sc.send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":%s}`, text)
				})
			}
			res, err := c.Call(t.Context(), "build", nil, nil)
			if took := time.Since(begun); took != tc.after {
				t.Errorf("after %v, want %v", took, tc.after)
			}
			if tc.fails == "" && (err != nil || res.Texts[0] != "through") || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("%v, %v", res, err)
			}
			synctest.Wait()
			if d := cmp.Diff(tc.polls, polls); d != "" {
				t.Errorf("polls: %s", d)
			}
		})
	}
}

// following runs a test with a client that follows the tasks of a workshop, over lines and over HTTP, in both protocols.
// open returns the store of the tasks; a nil open means a store in memory.
func following(t *testing.T, sdk SDK, open func() task.Store, c ClientConfig, test func(t *testing.T, c Client, w *workshop)) {
	for _, way := range []string{"lines", "HTTP"} {
		both(t, way, func(t *testing.T, version string) {
			var w workshop
			if open != nil {
				w.store = open()
			}
			c.Follow, c.Version = true, version
			client, srv := sdk.NewClient(c), sdk.NewServer(w.config())
			var end func()
			if way == "HTTP" {
				_, end = meetHTTP(t, client, srv, srv.HTTP(version == New))
			} else {
				end = meet(t, client, srv)
			}
			if _, err := client.Request(t.Context(), "tools/list"); err != nil {
				t.Fatal(err)
			}
			test(t, client, &w)
			_ = w.tasks.Close()
			end()
		})
	}
}

// meetHTTP connects a client to a server over HTTP, whose handler is h. end closes both.
func meetHTTP(t testing.TB, c Client, srv Server, h http.Handler) (web *Net, end func()) {
	t.Helper()
	web = NewNet(h)
	hc := web.Client()
	if err := c.ConnectHTTP(context.Background(), "http://localhost/", hc); err != nil {
		t.Fatal(err)
	}
	return web, func() {
		c.Close()
		srv.Close()
		web.End()
		hc.CloseIdleConnections()
		time.Sleep(time.Hour)
	}
}

// follow tests SPEC 11.2, 11.4, 11.6: a call that becomes a task returns the same result as a plain call. Questions go
// to the client's handler. With limits the call can last as long as the task, because the limits apply to each request
// or because the status messages of the task renew them.
func follow(t *testing.T, sdk SDK) {
	asked := 0
	var h hearer
	c := ClientConfig{Limits: request.Limits{Timeout: 50 * s, ResetOnProgress: true}, OnProgress: h.note,
		Elicit: func(_ context.Context, message string) string { asked++; return "accept" }}
	if sdk.LimitsWholeTask {
		c.Limits.Timeout = 65 * s
	}
	following(t, sdk, nil, c, func(t *testing.T, c Client, w *workshop) {
		asked = 0
		for _, tc := range []struct{ tool, want string }{
			{"quick", "quick"}, {"work", "done <nil>"}, {"now", "done <nil>"}, {"only", "done <nil>"}, {"fails", "disk is full"}, {"breaks", "panic: broken"}, {"steps", "done"},
			{"idle", "No progress for 40s (idle timeout). Tool should call heartbeat() during long work.\nlast: main.go 3 of 10"}, {"asks", "accept as it was"},
		} {
			res, err := c.Call(t.Context(), tc.tool, "mine", nil)
			if err != nil || res.Texts[0] != tc.want || res.IsError != (tc.tool == "fails" || tc.tool == "breaks" || tc.tool == "idle") {
				t.Errorf("%s: %+v, %v", tc.tool, res, err)
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		if _, err := c.Call(t.Context(), "nothing", nil, nil); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a tool that is not there: %v", err)
		}
		res, err := c.Call(t.Context(), "errs", nil, nil) // an error, if it is no result, has the code of a store that fails
		if sdk.ErrorsAreResults && (err != nil || !res.IsError) || !sdk.ErrorsAreResults && (err == nil || !strings.Contains(err.Error(), "no such file")) {
			t.Errorf("%v, %v", res, err)
		}
		for _, line := range h.list() {
			if !strings.HasPrefix(line, "mine ") {
				t.Error(line)
			}
		}
	})
}

// followCancel tests SPEC 11.5: if the caller cancels its context, or its limit is reached, the task is cancelled.
func followCancel(t *testing.T, sdk SDK) {
	for name, limits := range map[string]request.Limits{"caller": {}, "limit": {MaxTotal: 40 * s}} {
		t.Run(name, func(t *testing.T) {
			following(t, sdk, nil, ClientConfig{}, func(t *testing.T, c Client, w *workshop) {
				ctx, cancel := context.WithTimeout(request.WithLimits(t.Context(), limits), 40*s)
				defer cancel()
				if name == "caller" {
					time.AfterFunc(35*s, cancel)
				}
				if _, err := c.Call(ctx, "now", nil, nil); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				time.Sleep(s)
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.ended) != 1 || !errors.Is(w.ended[0], task.ErrCancelled) {
					t.Error(w.ended)
				}
			})
		})
	}
}

// A failingStore is a store whose Get fails the given number of times.
type failingStore struct {
	task.Store
	times atomic.Int32
	with  error
}

func (f *failingStore) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if f.times.Add(-1) >= 0 {
		return task.Record{}, f.with
	}
	return f.Store.Get(ctx, owner, id)
}

// followStore tests SPEC 11.10: while a server cannot read its store, it answers with -32603, and the client fetches
// the result later. The answer that a task is unknown ends the call at once. A call is never sent twice.
func followStore(t *testing.T, sdk SDK) {
	var store *failingStore
	open := func() task.Store {
		store = &failingStore{Store: task.NewMemory(0, 0), with: errors.New("no connection")}
		return store
	}
	following(t, sdk, open, ClientConfig{}, func(t *testing.T, c Client, w *workshop) {
		for _, at := range []time.Duration{35 * s, time.Minute} {
			time.AfterFunc(at, func() { store.times.Store(8) })
			if res, err := c.Call(t.Context(), "now", nil, nil); err != nil || res.Texts[0] != "done <nil>" {
				t.Errorf("%v, %v", res, err)
			}
			store.times.Store(0)
		}
		begun := time.Now()
		time.AfterFunc(10*s, func() { store.with = task.ErrUnknown; store.times.Store(1 << 30) })
		if _, err := c.Call(t.Context(), "now", nil, nil); err == nil || !strings.Contains(err.Error(), "unknown or expired") || time.Since(begun) > 12*s {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		store.times.Store(0)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.calls) != 3 {
			t.Error(w.calls)
		}
	})
}

// throughGateway runs a test with a client that follows tasks over HTTP through a gateway. For each method in times,
// the gateway answers that number of requests with fail.
func throughGateway(t *testing.T, sdk SDK, name, version string, fail func(http.ResponseWriter), times map[string]int, test func(t *testing.T, c Client, w *workshop, g *gateway.Gateway, web *Net)) {
	Bubble(t, name, func(t *testing.T) {
		var w workshop
		srv := sdk.NewServer(w.config())
		g := gateway.New(fail, times)
		g.Next = srv.HTTP(version == New)
		c := sdk.NewClient(ClientConfig{Follow: true, Version: version, Elicit: func(context.Context, string) string { return "accept" }})
		web, end := meetHTTP(t, c, srv, g)
		test(t, c, &w, g, web)
		_ = w.tasks.Close()
		end()
	})
}

// followOutage tests SPEC 11.10: the client repeats a request about a task that gets no answer: a poll, an answer to a
// question, or a cancellation. It does not repeat the call.
func followOutage(t *testing.T, sdk SDK) {
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": gateway.Status(500), "502": gateway.Status(502), "503": gateway.Status(503), "504": gateway.Status(504), "reset": gateway.Reset, "cut off": gateway.CutOff,
	} {
		throughGateway(t, sdk, name, New, fail, map[string]int{"tasks/get": 7, "tasks/update": 2, "tasks/cancel": 2}, func(t *testing.T, c Client, w *workshop, g *gateway.Gateway, _ *Net) {
			if res, err := c.Call(t.Context(), "now", nil, nil); err != nil || res.Texts[0] != "done <nil>" || g.Count("tasks/get") < 8 {
				t.Errorf("%v, %v after %d polls", res, err, g.Count("tasks/get"))
			}
			if res, err := c.Call(t.Context(), "asks", nil, nil); err != nil || res.Texts[0] != "accept as it was" || g.Count("tasks/update") != 3 {
				t.Errorf("%v, %v after %d answers", res, err, g.Count("tasks/update"))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*s)
			defer cancel()
			if _, err := c.Call(ctx, "now", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			time.Sleep(30 * s)
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.ended) != 1 || !errors.Is(w.ended[0], task.ErrCancelled) || g.Count("tools/call") != 3 {
				t.Errorf("%v after %d calls", w.ended, g.Count("tools/call"))
			}
		})
	}
	// A server that restarts refuses connections until it is up again.
	for _, version := range []string{Old, New} {
		throughGateway(t, sdk, "restart "+version, version, nil, nil, func(t *testing.T, c Client, w *workshop, g *gateway.Gateway, web *Net) {
			if version == Old && sdk.SessionsEndWithConnections {
				return
			}
			time.AfterFunc(45*s, func() { web.Down(true) })
			time.AfterFunc(90*s, func() { web.Down(false) })
			if res, err := c.Call(t.Context(), "now", nil, nil); err != nil || res.Texts[0] != "done <nil>" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	// The client repeats a poll for as long as the server keeps the task, and no longer.
	throughGateway(t, sdk, "ttl", New, gateway.Status(502), map[string]int{"tasks/get": 1 << 30}, func(t *testing.T, c Client, _ *workshop, g *gateway.Gateway, _ *Net) {
		g.Saying("tools/call", `"ttlMs":null`, `"ttlMs":20000`)
		begun := time.Now()
		_, err := c.Call(t.Context(), "now", nil, nil)
		if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), "502") && !strings.Contains(err.Error(), "Bad Gateway") || took < 15*s || took > 30*s || g.Count("tasks/get") < 5 {
			t.Errorf("%v after %v and %d polls", err, took, g.Count("tasks/get"))
		}
	})
	// Any other status ends the call at once.
	for _, code := range []int{400, 403, 404, 408, 410, 425, 501, 505} {
		throughGateway(t, sdk, fmt.Sprint(code), New, gateway.Status(code), map[string]int{"tasks/get": 1 << 30}, func(t *testing.T, c Client, _ *workshop, g *gateway.Gateway, _ *Net) {
			if _, err := c.Call(t.Context(), "now", nil, nil); err == nil || errors.Is(err, context.DeadlineExceeded) || g.Count("tasks/get") != 1 {
				t.Errorf("%v after %d requests", err, g.Count("tasks/get"))
			}
		})
	}
}

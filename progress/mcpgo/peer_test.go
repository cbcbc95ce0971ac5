package mcpgo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A peer is a client that is written by hand, since mcp-go's does not know tasks.
type peer struct {
	t        *testing.T
	modern   bool
	declares bool // tasks, from 2026-07-28 on
	send     func(ctx context.Context, id any, method string, params map[string]any) (message, int)
	notify   func(method string, params map[string]any)
	answer   func(id any, result any) // to a request of the server's
	listen   func()                   // opens the stream of a GET, over HTTP
	end      func()                   // ends the session, over HTTP

	mu    sync.Mutex
	next  int
	inbox chan message // notifications, and requests of the server
}

// A way is how a peer reaches a server.
type way struct {
	name   string
	modern bool
	open   func(t *testing.T, s *server.MCPServer, p *peer)
}

var ways = []way{
	{"stdio 2025", false, overStdio},
	{"stdio 2026", true, overStdio},
	{"http 2025", false, overHTTP()},
	{"http 2025 stateless", false, overHTTP(server.WithStateLess(true))},
	{"http 2025 event store", false, overHTTP(server.WithEventStore(server.NewInMemoryEventStore()))},
	{"http 2026", true, overHTTP()},
	{"http 2026 stateless", true, overHTTP(server.WithStateLess(true))},
	{"sse 2025", false, overSSE},
	{"sse 2026", true, overSSE},
}

// over runs a test over the ways whose names begin with one of the prefixes, or all, at once.
func over(t *testing.T, test func(t *testing.T, w way), prefixes ...string) {
	t.Helper()
	for _, w := range ways {
		wanted := len(prefixes) == 0
		for _, prefix := range prefixes {
			wanted = wanted || strings.HasPrefix(w.name, prefix)
		}
		if wanted {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				test(t, w)
			})
		}
	}
}

func (w way) connect(t *testing.T, s *server.MCPServer) *peer {
	t.Helper()
	p := &peer{t: t, modern: w.modern, declares: true, inbox: make(chan message, 1000), listen: func() {}}
	w.open(t, s, p)
	if !w.modern {
		p.initialize()
	}
	return p
}

func (p *peer) initialize() map[string]any {
	p.t.Helper()
	res, fault := p.call("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}},
		"clientInfo": map[string]any{"name": "peer", "version": "1"},
	})
	if fault != nil {
		p.t.Fatal(fault)
	}
	p.notify("notifications/initialized", nil)
	return res
}

// call sends a request, and returns the result or the error of the answer.
func (p *peer) call(method string, params map[string]any) (result, fault map[string]any) {
	p.t.Helper()
	m, _ := p.send(soon(p.t), p.id(), method, p.params(params))
	return object(p.t, m.Result), object(p.t, m.Error)
}

func (p *peer) id() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return float64(p.next)
}

func (p *peer) params(params map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, params)
	if !p.modern {
		return out
	}
	capabilities := map[string]any{"elicitation": map[string]any{}}
	if p.declares {
		capabilities["extensions"] = map[string]any{task.ExtensionID: map[string]any{}}
	}
	meta := map[string]any{mcp.MetaKeyProtocolVersion: "2026-07-28", mcp.MetaKeyClientCapabilities: capabilities}
	if own, ok := params["_meta"].(map[string]any); ok {
		maps.Copy(meta, own)
	}
	out["_meta"] = meta
	return out
}

func object(t *testing.T, raw json.RawMessage) (o map[string]any) {
	t.Helper()
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	return o
}

// handle calls a tool, and returns the id of its task.
func (p *peer) handle(tool string, more map[string]any) string {
	p.t.Helper()
	params := map[string]any{"name": tool, "arguments": map[string]any{}}
	if !p.modern {
		params["task"] = map[string]any{"ttl": 60000}
	}
	maps.Copy(params, more)
	res, fault := p.call("tools/call", params)
	id := taskID(p, res)
	if id == "" || p.modern && res["resultType"] != "task" {
		p.t.Fatalf("%s: no handle but %v %v", tool, res, fault)
	}
	return id
}

// taskID is that of a handle, "" where it is none.
func taskID(p *peer, res map[string]any) string {
	if !p.modern {
		res, _ = res["task"].(map[string]any)
	}
	id, _ := res["taskId"].(string)
	return id
}

// get asks about a task until it has one of the statuses.
func (p *peer) get(id string, until ...string) map[string]any {
	p.t.Helper()
	for deadline := time.Now().Add(slack); ; time.Sleep(10 * ms) {
		res, fault := p.call("tasks/get", map[string]any{"taskId": id})
		for _, status := range until {
			if res["status"] == status {
				return res
			}
		}
		if fault != nil || time.Now().After(deadline) {
			p.t.Fatalf("tasks/get: %v %v, want %v", res, fault, until)
		}
	}
}

// result fetches what a task has ended with, as the protocol has it.
func (p *peer) result(id string) (result, fault map[string]any) {
	p.t.Helper()
	if !p.modern {
		return p.call("tasks/result", map[string]any{"taskId": id})
	}
	res := p.get(id, "completed", "failed", "cancelled")
	result, _ = res["result"].(map[string]any)
	fault, _ = res["error"].(map[string]any)
	return result, fault
}

func textsOf(result map[string]any) (texts []string) {
	content, _ := result["content"].([]any)
	for _, c := range content {
		texts = append(texts, fmt.Sprint(c.(map[string]any)["text"]))
	}
	return texts
}

// A dispatcher hands answers to those who wait for them.
type dispatcher struct {
	mu      sync.Mutex
	waiting map[any]chan message
	inbox   chan message
}

func (d *dispatcher) await(id any) chan message {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[any]chan message)
	}
	c := make(chan message, 1)
	d.waiting[id] = c
	return c
}

func (d *dispatcher) take(m message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Method != "" {
		d.inbox <- m
		return
	}
	if c := d.waiting[m.ID]; c != nil {
		delete(d.waiting, m.ID)
		c <- m
	}
}

// eachData calls f with the data of each event, and, where there are no events, with each line.
func eachData(r io.Reader, events bool, f func(data string)) {
	sc := bufio.NewScanner(r)
	for sc.Buffer(nil, 1<<26); sc.Scan(); {
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			f(data)
		} else if !events && strings.HasPrefix(sc.Text(), "{") {
			f(sc.Text())
		}
	}
}

func (d *dispatcher) read(r io.Reader, events bool) {
	eachData(r, events, func(data string) {
		var m message
		if json.Unmarshal([]byte(data), &m) == nil {
			d.take(m)
		}
	})
}

func encodeMessage(id any, method string, params map[string]any) []byte {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	if id != nil {
		m["id"] = id
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func encodeAnswer(id, result any) []byte {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil {
		panic(err)
	}
	return data
}

// async is a peer whose answers come another way than the requests go.
func (p *peer) async(d *dispatcher, write func([]byte)) {
	p.send = func(ctx context.Context, id any, method string, params map[string]any) (message, int) {
		c := d.await(id)
		write(encodeMessage(id, method, params))
		select {
		case m := <-c:
			return m, 0
		case <-ctx.Done():
			return message{}, 0
		}
	}
	p.notify = func(method string, params map[string]any) { write(encodeMessage(nil, method, params)) }
	p.answer = func(id, result any) { write(encodeAnswer(id, result)) }
}

func overStdio(t *testing.T, s *server.MCPServer, p *peer) {
	in, out := servePipes(t, s)
	d := &dispatcher{inbox: p.inbox}
	go d.read(in, false)
	var mu sync.Mutex
	p.async(d, func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(append(line, '\n'))
	})
}

func overSSE(t *testing.T, s *server.MCPServer, p *peer) {
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewSSEServer(s)))
	t.Cleanup(ts.Close)
	t.Cleanup(ts.CloseClientConnections)
	resp, err := ts.Client().Get(ts.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	d := &dispatcher{inbox: p.inbox}
	endpoint := make(chan string, 1)
	go func() {
		defer resp.Body.Close()
		eachData(resp.Body, true, func(data string) {
			if strings.HasPrefix(data, "{") {
				d.read(strings.NewReader(data), false)
			} else {
				endpoint <- data
			}
		})
	}()
	url := within(t, endpoint, "the endpoint")
	if strings.HasPrefix(url, "/") {
		url = ts.URL + url
	}
	p.async(d, func(body []byte) {
		if resp, err := ts.Client().Post(url, "application/json", bytes.NewReader(body)); err == nil {
			_ = resp.Body.Close()
		}
	})
}

func overHTTP(opts ...server.StreamableHTTPOption) func(*testing.T, *server.MCPServer, *peer) {
	return func(t *testing.T, s *server.MCPServer, p *peer) {
		ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s, opts...)))
		t.Cleanup(ts.Close)
		t.Cleanup(ts.CloseClientConnections)
		p.streamable(ts.URL, ts.Client())
	}
}

func (p *peer) streamable(url string, client *http.Client) {
	var mu sync.Mutex
	session := ""
	d := &dispatcher{inbox: p.inbox}
	request := func(ctx context.Context, method string, body []byte, header map[string]string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		mu.Lock()
		if session != "" {
			r.Header.Set(mcp.HeaderSessionID, session)
		}
		mu.Unlock()
		r.Header.Set(mcp.HeaderProtocolVersion, "2025-11-25")
		if p.modern {
			r.Header.Set(mcp.HeaderProtocolVersion, "2026-07-28")
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil
		}
		if id := resp.Header.Get(mcp.HeaderSessionID); id != "" {
			mu.Lock()
			session = id
			mu.Unlock()
		}
		return resp
	}
	p.send = func(ctx context.Context, id any, method string, params map[string]any) (message, int) {
		header := map[string]string{}
		if p.modern {
			header[mcp.HeaderMethod] = method
			for _, key := range []string{"name", "taskId"} {
				if name, ok := params[key].(string); ok {
					header[mcp.HeaderName] = name
				}
			}
		}
		c := d.await(id)
		resp := request(ctx, http.MethodPost, encodeMessage(id, method, params), header)
		if resp == nil {
			return message{}, 0
		}
		defer resp.Body.Close()
		d.read(resp.Body, strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"))
		select {
		case m := <-c:
			return m, resp.StatusCode
		default:
			return message{}, resp.StatusCode
		}
	}
	post := func(body []byte) {
		if resp := request(context.Background(), http.MethodPost, body, nil); resp != nil {
			_ = resp.Body.Close()
		}
	}
	p.notify = func(method string, params map[string]any) { post(encodeMessage(nil, method, params)) }
	p.answer = func(id, result any) { post(encodeAnswer(id, result)) }
	p.end = func() {
		if resp := request(context.Background(), http.MethodDelete, nil, nil); resp != nil {
			_ = resp.Body.Close()
		}
	}
	p.t.Cleanup(func() { // without it mcp-go keeps what a session has recorded
		if !p.modern {
			p.end()
		}
	})
	p.listen = func() {
		resp := request(context.Background(), http.MethodGet, nil, nil)
		if resp == nil || resp.StatusCode != http.StatusOK {
			p.t.Fatal("no stream")
		}
		go func() {
			defer resp.Body.Close()
			d.read(resp.Body, true)
		}()
	}
}

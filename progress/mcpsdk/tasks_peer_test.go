package mcpsdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

// A peer is a client that speaks JSON-RPC by hand, since the SDK's knows no tasks.
type peer struct {
	t       testing.TB
	version string
	// exchange sends a request and returns its answer; messages that come before go to seen.
	exchange func(ctx context.Context, id int, method string, message []byte) (wireMessage, error)
	answer   func(message []byte) // to a request of the server

	mu    sync.Mutex
	last  int
	seen  []wireMessage
	ask   func(wireMessage) any // answers questions of the server
	plain bool                  // tasks are not declared
	close func()
}

type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

type object = map[string]any

// do sends a request and returns its answer.
func (p *peer) do(ctx context.Context, method string, params object) (wireMessage, error) {
	p.mu.Lock()
	p.last++
	id := p.last
	p.mu.Unlock()
	all := object{}
	for k, v := range params {
		all[k] = v
	}
	if p.version == protocol2026 {
		meta, _ := all["_meta"].(object)
		with := object{
			"io.modelcontextprotocol/protocolVersion":    p.version,
			"io.modelcontextprotocol/clientInfo":         object{"name": "peer", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": object{"elicitation": object{}, "extensions": object{"io.modelcontextprotocol/tasks": object{}}},
		}
		if p.plain {
			with["io.modelcontextprotocol/clientCapabilities"] = object{}
		}
		for k, v := range meta {
			with[k] = v
		}
		all["_meta"] = with
	}
	message, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": all})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.exchange(ctx, id, method, message)
}

// request is do for what must be answered with a result.
func (p *peer) request(method string, params object) object {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	defer cancel()
	m, err := p.do(ctx, method, params)
	if err != nil || m.Error != nil {
		p.t.Fatalf("%s: %v, %+v", method, err, m.Error)
	}
	return m.Result
}

// take is called with what comes that is no answer.
func (p *peer) take(m wireMessage) {
	p.mu.Lock()
	p.seen = append(p.seen, m)
	ask := p.ask
	p.mu.Unlock()
	if len(m.ID) > 0 && m.Method != "" && ask != nil {
		result, err := json.Marshal(object{"jsonrpc": "2.0", "id": m.ID, "result": ask(m)})
		if err != nil {
			p.t.Error(err)
		}
		p.answer(result)
	}
}

// handshake is what comes first before 2026-07-28.
func (p *peer) handshake(notify func(message []byte)) {
	if p.version != protocol2026 {
		p.request("initialize", object{"protocolVersion": p.version, "clientInfo": object{"name": "peer", "version": "1"}, "capabilities": object{"elicitation": object{}}})
		notify([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
}

// call calls a tool as a task, as far as that is up to the client.
func (p *peer) call(tool string, more object) object {
	p.t.Helper()
	return p.request("tools/call", p.callParams(tool, more))
}

func (p *peer) callParams(tool string, more object) object {
	params := object{"name": tool, "arguments": object{}, "_meta": object{"progressToken": "t"}}
	if p.version == protocol2025 && !p.plain {
		params["task"] = object{"ttl": 60000}
	}
	for k, v := range more {
		params[k] = v
	}
	return params
}

// handle returns the task of a handle.
func (p *peer) handle(res object) object {
	p.t.Helper()
	h := res
	if p.version == protocol2025 {
		h, _ = res["task"].(object)
	} else if res["resultType"] != "task" {
		h = nil
	}
	if h["taskId"] == nil || h["createdAt"] == nil {
		p.t.Fatalf("no handle: %v", res)
	}
	return h
}

// final polls until the task has ended.
func (p *peer) final(id any) object {
	p.t.Helper()
	return p.until(id, "completed", "failed", "cancelled")
}

func (p *peer) until(id any, statuses ...string) object {
	p.t.Helper()
	pause := 5 * ms // and longer each time: under the race detector a request is work
	for begun := time.Now(); time.Since(begun) < 2*slack; time.Sleep(pause) {
		pause = min(2*pause, 80*ms)
		res := p.request("tasks/get", object{"taskId": id})
		for _, s := range statuses {
			if res["status"] == s {
				return res
			}
		}
	}
	p.t.Fatalf("the task does not become %v", statuses)
	return nil
}

// says waits for a status message that begins with a text.
func (p *peer) says(id any, text string) {
	p.t.Helper()
	pause := ms
	for begun := time.Now(); ; time.Sleep(pause) {
		pause = min(2*pause, 80*ms)
		res := p.request("tasks/get", object{"taskId": id})
		if got, _ := res["statusMessage"].(string); strings.HasPrefix(got, text) {
			return
		}
		if time.Since(begun) > slack {
			p.t.Fatalf("no status message: %v", res)
		}
	}
}

// result returns what the task's call was answered with.
func (p *peer) result(id any) object {
	p.t.Helper()
	if p.version == protocol2025 {
		return p.request("tasks/result", object{"taskId": id})
	}
	res, _ := p.final(id)["result"].(object)
	return res
}

func firstText(res object) string {
	content, _ := res["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	first, _ := content[0].(object)
	text, _ := first["text"].(string)
	return text
}

// overPipes is a peer on stdio.
func overPipes(t testing.TB, s *mcp.Server, version string) *peer {
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	ss, err := s.Connect(context.Background(), mcpsdk.WrapTransport(&mcp.IOTransport{Reader: serverIn, Writer: serverOut}), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, version: version}
	var mu sync.Mutex
	waiting := make(map[string]chan wireMessage)
	write := func(message []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = in.Write(append(message, '\n'))
	}
	p.answer = func(message []byte) { go write(message) }
	p.exchange = func(ctx context.Context, id int, _ string, message []byte) (wireMessage, error) {
		ch := make(chan wireMessage, 1)
		mu.Lock()
		waiting[fmt.Sprint(id)] = ch
		mu.Unlock()
		write(message)
		select {
		case m := <-ch:
			return m, nil
		case <-ctx.Done():
			write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
			return wireMessage{}, ctx.Err()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m wireMessage
			if err := json.Unmarshal(line, &m); err != nil {
				t.Errorf("%v: %s", err, line)
			}
			mu.Lock()
			ch := waiting[string(m.ID)]
			mu.Unlock()
			if m.Method == "" && ch != nil {
				ch <- m
			} else {
				p.take(m)
			}
		}
	}()
	t.Cleanup(func() {
		_, _ = in.Close(), out.Close()
		_ = ss.Wait()
		<-done
	})
	p.handshake(write)
	return p
}

// overWeb is a peer of an HTTP server. With listen it has a GET stream.
func overWeb(t testing.TB, handler http.Handler, version string, listen bool) *peer {
	server := httptest.NewServer(handler)
	p := &peer{t: t, version: version}
	var session string
	client := &http.Client{Transport: &http.Transport{}}
	post := func(ctx context.Context, method string, message []byte) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "POST", server.URL, bytes.NewReader(message))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", version)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		if version == protocol2026 {
			r.Header.Set("Mcp-Method", method)
			var m struct{ Params struct{ Name, TaskID string } }
			_ = json.Unmarshal(message, &m)
			if name := m.Params.Name + m.Params.TaskID; name != "" {
				r.Header.Set("Mcp-Name", name)
			}
		}
		return client.Do(r)
	}
	notify := func(message []byte) {
		res, err := post(context.Background(), "", message)
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	}
	// The server acts on an answer before its POST is answered, so that a test may be over while
	// one is under way: what ends the connections waits for them.
	var answers sync.WaitGroup
	p.answer = func(message []byte) { answers.Go(func() { notify(message) }) }
	p.exchange = func(ctx context.Context, id int, method string, message []byte) (wireMessage, error) {
		res, err := post(ctx, method, message)
		if err != nil {
			return wireMessage{}, err
		}
		defer res.Body.Close()
		if method == "initialize" {
			session = res.Header.Get("Mcp-Session-Id")
		}
		return p.read(res, fmt.Sprint(id))
	}
	p.close = func() {
		answers.Wait()
		server.CloseClientConnections()
		client.CloseIdleConnections()
		server.Close()
	}
	t.Cleanup(p.close)
	p.handshake(notify)
	if listen {
		r, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", version)
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = p.read(res, "none")
		}()
		t.Cleanup(func() {
			_ = res.Body.Close()
			<-done
		})
	}
	return p
}

// read returns the answer to a request from what has come for it.
func (p *peer) read(res *http.Response, id string) (m wireMessage, err error) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, _ := io.ReadAll(res.Body)
		if err := json.Unmarshal(body, &m); err != nil {
			return m, fmt.Errorf("%s: %s", res.Status, body)
		}
		return m, nil
	}
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return m, err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		m = wireMessage{}
		if err := json.Unmarshal(data, &m); err != nil {
			return m, fmt.Errorf("%w: %s", err, data)
		}
		if m.Method == "" && string(m.ID) == id {
			return m, nil
		}
		p.take(m)
	}
}

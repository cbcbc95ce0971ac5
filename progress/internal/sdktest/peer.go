package sdktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/task"
)

type object = map[string]any

// A Message is a message that a peer has received.
type Message struct {
	At     time.Duration // when it was received, since the peer was created
	Took   time.Duration // of an answer: since the request was sent
	Raw    json.RawMessage
	ID     json.RawMessage
	Method string
	Params object
	Result object
	Error  *Fault
}

func (m *Message) String() string {
	if m == nil {
		return "no message"
	}
	return fmt.Sprintf("%s after %v", m.Raw, m.At)
}

// A Fault is a JSON-RPC error.
type Fault struct {
	Code    int
	Message string
	Data    object
}

// A Peer is a client that writes and reads JSON-RPC messages without an SDK.
type Peer struct {
	Way
	t            testing.TB
	begun        time.Time
	declare      bool                              // declare tasks as a capability, from protocol 2026-07-28 on
	ask          func(m Message) any               // returns the result of a request of the server, or nil for no answer; may be nil
	capabilities object                            // of the server, before 2026-07-28; see declared
	post         func(x *Exchange, message []byte) // sends a message, and settles x over HTTP
	cut          func()                            // cuts the connections without a message
	leave        func()                            // ends the session as the transport requires
	end          func()                            // closes the server
	web          *Net                              // nil over lines
	stop         context.CancelFunc                // shuts down a server over lines; nil over HTTP
	over         chan error                        // gets the result of Serve; nil over HTTP

	mu      sync.Mutex
	last    int
	log     []Message
	waiting map[string]*Exchange
	session string
	gone    sync.WaitGroup
}

// An Exchange is a message of a peer, and the answer to it.
type Exchange struct {
	p       *Peer
	ID      string // in JSON; "" if the message is no request
	Method  string
	name    string
	begun   time.Duration // when it was sent, since the peer was created
	ctx     context.Context
	hangUp  context.CancelFunc
	done    chan struct{}
	answer  *Message // nil if there was no answer
	Status  int      // the status of the HTTP response; 0 over other transports
	settled bool     // done is closed
}

// Dial returns a new peer that is connected to srv, after the handshake. The peer and the server are closed when the
// test ends.
func Dial(t testing.TB, srv Server, w Way) *Peer {
	t.Helper()
	p := &Peer{Way: w, t: t, begun: time.Now(), declare: true, waiting: make(map[string]*Exchange), cut: func() {}, leave: func() {}, end: func() {}}
	if w.Handler != nil {
		p.postTo(NewNet(w.Handler(srv)), srv.Close)
	} else {
		w.open(p, srv)
	}
	if w.Version != New {
		p.initialize()
	}
	t.Cleanup(p.close)
	return p
}

// Request sends a request, and returns the answer, or nil if there was none.
func (p *Peer) Request(method string, params map[string]any) *Message {
	return p.start(method, params).wait()
}

// Task calls a tool as a task, and returns its id.
func (p *Peer) Task(tool string) any {
	p.t.Helper()
	return p.handle(p.task(tool, nil).wait())["taskId"]
}

func (p *Peer) initialize() {
	res := p.must("initialize", object{"protocolVersion": p.Version, "capabilities": object{"elicitation": object{}, "sampling": object{}},
		"clientInfo": object{"name": cmp.Or(p.Client, "peer"), "version": "1"}})
	p.capabilities, _ = res["capabilities"].(object)
	p.notify("notifications/initialized", nil)
}

// declared returns the capabilities of the server.
func (p *Peer) declared() object {
	if p.Version != New {
		return p.capabilities
	}
	capabilities, _ := p.must("server/discover", nil)["capabilities"].(object)
	return capabilities
}

// tools lists the tools of the server by name.
func (p *Peer) tools() map[string]object {
	all := make(map[string]object)
	for _, tool := range p.must("tools/list", nil)["tools"].([]any) {
		all[tool.(object)["name"].(string)] = tool.(object)
	}
	return all
}

// another returns a new peer of the same server over HTTP.
func (p *Peer) another() *Peer {
	w := p.Way
	w.Handler, w.open = nil, func(o *Peer, _ Server) { o.postTo(p.web, func() {}) }
	return Dial(p.t, nil, w)
}

// close closes the connections of the peer, and the server. If a goroutine remains, the bubble of the test reports it.
func (p *Peer) close() {
	p.cut()
	p.end()
	p.gone.Wait()
	time.Sleep(time.Hour) // until goroutines that wait for a timer have ended
}

func (p *Peer) params(params object) object {
	all := object{}
	maps.Copy(all, params)
	if p.Version != New {
		return all
	}
	capabilities := object{"elicitation": object{}}
	if p.declare {
		capabilities["extensions"] = object{task.ExtensionID: object{}}
	}
	meta := object{"io.modelcontextprotocol/protocolVersion": New, "io.modelcontextprotocol/clientInfo": object{"name": cmp.Or(p.Client, "peer"), "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": capabilities}
	if own, ok := params["_meta"].(object); ok {
		maps.Copy(meta, own)
	}
	all["_meta"] = meta
	return all
}

// start sends a request, and does not wait for the answer.
func (p *Peer) start(method string, params object) *Exchange {
	p.mu.Lock()
	p.last++
	id := fmt.Sprint(p.last)
	p.mu.Unlock()
	data, err := json.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": p.params(params)})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.raw(id, method, data)
}

// raw sends data, the JSON of a request, without a change.
func (p *Peer) raw(id, method string, data []byte) *Exchange {
	var m struct {
		Params struct{ Name, TaskID string }
	}
	_ = json.Unmarshal(data, &m)
	x := p.exchange(id, method)
	x.name = m.Params.Name + m.Params.TaskID
	p.mu.Lock()
	p.waiting[id] = x
	p.mu.Unlock()
	p.post(x, data)
	return x
}

func (p *Peer) exchange(id, method string) *Exchange {
	x := &Exchange{p: p, ID: id, Method: method, begun: time.Since(p.begun), done: make(chan struct{})}
	x.ctx, x.hangUp = context.WithCancel(context.Background())
	return x
}

// call sends a tools/call. more has further params, and members of _meta.
func (p *Peer) call(tool string, token any, more object) *Exchange {
	params := object{"name": tool, "arguments": object{}}
	meta := object{}
	if token != nil {
		meta["progressToken"] = token
	}
	for k, v := range more {
		if k == "_meta" {
			maps.Copy(meta, v.(object))
			continue
		}
		params[k] = v
	}
	if len(meta) > 0 {
		params["_meta"] = meta
	}
	return p.start("tools/call", params)
}

// task sends a tools/call that may become a task. In protocol Old, the client has to request that with "task" in the
// params.
func (p *Peer) task(tool string, more object) *Exchange {
	if p.Version == Old {
		all := object{"task": object{"ttl": 60000}}
		maps.Copy(all, more)
		more = all
	}
	return p.call(tool, "t", more)
}

// must sends a request, and returns its result. It fails the test if the answer is not a result.
func (p *Peer) must(method string, params object) object {
	p.t.Helper()
	m := p.Request(method, params)
	if m == nil || m.Error != nil || m.Result == nil {
		p.t.Fatalf("%s: %+v", method, m)
	}
	return m.Result
}

func (p *Peer) notify(method string, params object) {
	m := object{"jsonrpc": "2.0", "method": method}
	if params = p.params(params); len(params) > 0 {
		m["params"] = params
	}
	data, _ := json.Marshal(m)
	p.post(p.exchange("", method), data)
}

// cancel cancels a request as its transport and protocol require: it closes the connection of the request, or sends a
// notifications/cancelled with the reason.
func (x *Exchange) cancel(reason string) {
	if x.p.http() && x.p.Version == New {
		x.hangUp()
		return
	}
	x.p.notify("notifications/cancelled", object{"requestId": json.RawMessage(x.ID), "reason": reason})
}

// wait waits for the answer, and returns it, or nil if the exchange has ended without an answer.
func (x *Exchange) wait() *Message {
	<-x.done
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	return x.answer
}

// answered reports whether the answer has arrived.
func (x *Exchange) answered() bool {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	return x.answer != nil
}

func (x *Exchange) settle(m *Message) { // the caller holds p.mu
	if !x.settled {
		x.settled = true
		x.answer = m
		close(x.done)
	}
}

// heard returns the requests and notifications of a method that have arrived.
func (p *Peer) heard(method string) []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ofMethod(p.log, method)
}

func ofMethod(all []Message, method string) []Message {
	return slices.DeleteFunc(slices.Clone(all), func(m Message) bool { return m.Method != method })
}

// progress returns the progress notifications with this token that have arrived.
func (p *Peer) progress(token any) (all []Message) {
	want, _ := json.Marshal(token)
	for _, m := range p.heard("notifications/progress") {
		if got, _ := json.Marshal(m.Params["progressToken"]); string(got) == string(want) {
			all = append(all, m)
		}
	}
	return all
}

func (p *Peer) take(data []byte) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		p.t.Errorf("%v: %s", err, data)
		return
	}
	m.Raw, m.At = bytes.Clone(data), time.Since(p.begun)
	p.mu.Lock()
	p.log = append(p.log, m)
	ask := p.ask
	if m.Method == "" {
		if x := p.waiting[string(m.ID)]; x != nil {
			delete(p.waiting, string(m.ID))
			m.Took = m.At - x.begun
			x.settle(&m)
		} else if len(m.ID) > 0 && string(m.ID) != "null" {
			p.t.Errorf("an answer that nobody waits for: %s", data)
		}
	}
	p.mu.Unlock()
	if m.Method != "" && len(m.ID) > 0 && ask != nil {
		p.gone.Go(func() {
			if result := ask(m); result != nil {
				answer, _ := json.Marshal(object{"jsonrpc": "2.0", "id": m.ID, "result": result})
				p.post(p.exchange("", ""), answer)
			}
		})
	}
}

// lost settles all open exchanges without an answer, because the connection has ended.
func (p *Peer) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, x := range p.waiting {
		delete(p.waiting, id)
		x.settle(nil)
	}
}

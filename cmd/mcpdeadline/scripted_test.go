package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// A scripted is a server within the test, with any number of runs.
type scripted struct {
	tools  func(run int) string                   // the list of tools; nil means none
	serve  func(r *scriptedRun, m *message) bool  // what it does otherwise; false means the usual
	falls  func() time.Duration                   // how long it takes to end after its stdin is closed
	closes func(r *scriptedRun)                   // what it does when its stdin is closed
	starts func(run int, send func(string)) error // what it does when it is started

	mu   sync.Mutex
	log  io.Writer // of the proxy; nil means none
	last *scriptedRun
	runs int
	up   int            // runs that have not ended
	most int            // of them at once
	got  map[string]int // how often each request has arrived, by its id
	seen []string       // methods, in order, of the last run
}

// A scriptedState is what a scripted server has seen.
type scriptedState struct {
	runs, up int
	got      map[string]int
	seen     []string
}

func (s *scripted) state() scriptedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return scriptedState{s.runs, s.up, maps.Clone(s.got), slices.Clone(s.seen)}
}

type scriptedRun struct {
	*scripted
	run    int
	r      receiver
	mu     sync.Mutex
	closed bool
	in     chan *message
	over   chan struct{}
	once   sync.Once
}

func (s *scripted) dial(r receiver) (upstream, error) {
	s.mu.Lock()
	s.runs++
	s.up++
	s.most = max(s.most, s.up)
	s.seen = nil
	u := &scriptedRun{scripted: s, run: s.runs, r: r, in: make(chan *message, 1000), over: make(chan struct{})}
	s.last = u
	if s.got == nil {
		s.got = make(map[string]int)
	}
	s.mu.Unlock()
	go func() {
		defer u.end()
		if s.starts != nil && s.starts(u.run, u.say) != nil {
			return
		}
		for m := range u.in {
			u.take(m)
		}
		if s.closes != nil {
			s.closes(u)
		}
		if s.falls != nil {
			time.Sleep(s.falls())
		}
	}()
	return u, nil
}

func (u *scriptedRun) say(line string) { u.r.message(readMessage([]byte(line))) }

func (u *scriptedRun) answer(m *message, result string) {
	u.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (u *scriptedRun) take(m *message) {
	u.scripted.mu.Lock()
	u.seen = append(u.seen, m.Method)
	if m.isRequest() {
		u.got[string(m.ID)]++
	}
	u.scripted.mu.Unlock()
	if u.serve != nil && u.serve(u, m) || !m.isRequest() {
		return
	}
	switch m.Method {
	case "initialize":
		u.answer(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		tools := `[{"name":"a"}]`
		if u.tools != nil {
			tools = u.tools(u.run)
		}
		u.answer(m, `{"tools":`+tools+`}`)
	case "tools/call":
		u.answer(m, fmt.Sprintf(`{"content":[{"type":"text","text":"run %d"}]}`, u.run))
	default:
		u.answer(m, `{}`)
	}
}

func (u *scriptedRun) send(m *message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.in <- m
	}
}

func (u *scriptedRun) close() {
	u.mu.Lock()
	if !u.closed {
		u.closed = true
		close(u.in)
	}
	u.mu.Unlock()
	limit := time.AfterFunc(closeLimit+termLimit, u.end)
	defer limit.Stop()
	<-u.over
}

func (u *scriptedRun) end() {
	u.once.Do(func() {
		u.scripted.mu.Lock()
		u.up--
		u.scripted.mu.Unlock()
		close(u.over)
	})
}

func (u *scriptedRun) await()                 {}
func (u *scriptedRun) kill(error)             { u.end() }
func (u *scriptedRun) ended() <-chan struct{} { return u.over }
func (u *scriptedRun) why() error             { return errors.New("exit status 0") }
func (u *scriptedRun) processes() observable  { return nil }

// A scriptedHost is a host within the test.
type scriptedHost struct {
	t *testing.T
	*session
	input sync.Mutex
	mu    sync.Mutex
	waits map[string]chan *message
	got   []*message // what is no answer
	lone  []string   // answers that nobody waits for
	ended chan error
	end   context.CancelFunc
}

// most is how many bytes a message has at most in tests.
const most = 4 << 20

// newProxy returns a proxy within the test, which has yet to get its dialer.
func newProxy(t *testing.T, args []string) *proxy {
	t.Helper()
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	policy, _, err := o.policy()
	if err != nil {
		t.Fatal(err)
	}
	return &proxy{
		options: o, calls: &toolcall.Settings{Policy: policy}, drain: new(toolcall.Drain),
		logger: slog.New(slog.DiscardHandler), stderr: io.Discard, max: most, mark: commandMark(args),
	}
}

// connectScripted has the proxy serve a host with a scripted server. flags are those of the proxy.
func connectScripted(t *testing.T, server *scripted, flags ...string) *scriptedHost {
	t.Helper()
	p := newProxy(t, append(flags, "--", "scripted"))
	p.dial = server.dial
	if server.log != nil {
		p.logger = slog.New(slog.NewTextHandler(server.log, nil))
	}
	h := &scriptedHost{t: t, waits: make(map[string]chan *message), ended: make(chan error, 1)}
	h.session = newSession(p, "stdio", h.take)
	ctx, end := context.WithCancel(context.Background())
	h.end = end
	go func() { h.ended <- h.serve(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *scriptedHost) take(m *message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !m.isResponse() {
		h.got = append(h.got, m)
		return
	}
	c := h.waits[string(m.ID)]
	if c == nil {
		h.lone = append(h.lone, string(m.raw))
		return
	}
	delete(h.waits, string(m.ID))
	c <- m
}

func (h *scriptedHost) send(line string) {
	h.input.Lock()
	defer h.input.Unlock()
	h.fromHost(context.Background(), readMessage([]byte(line)))
}

func (h *scriptedHost) ask(id, method, params string) <-chan *message {
	c := make(chan *message, 1)
	h.mu.Lock()
	h.waits[id] = c
	h.mu.Unlock()
	h.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return c
}

// answered returns the answer to a request.
func (h *scriptedHost) answered(id, method, params string) *message {
	h.t.Helper()
	select {
	case m := <-h.ask(id, method, params):
		return m
	case <-time.After(generous):
		h.t.Fatalf("%s %s is not answered", method, id)
		return nil
	}
}

func (h *scriptedHost) initialized() *scriptedHost {
	h.t.Helper()
	h.answered(`"init"`, "initialize", initialize)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

// heard returns the methods of what came that is no answer.
func (h *scriptedHost) heard() (methods []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.got {
		methods = append(methods, m.Method)
	}
	return methods
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/front"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/remote"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A webHost is a client of a proxy over HTTP within the test, without a network.
type webHost struct {
	t       *testing.T
	w       *front.Front
	session string
}

// newWebHost returns a proxy that serves the servers of a machine over HTTP.
func newWebHost(t *testing.T, vm *virtualMachine, args ...string) *webHost {
	t.Helper()
	p, o := newProxy(t, args)
	p.Max = cmp.Or(vm.most, p.Max)
	if p.Dials = func() server.Dialer { return server.Command(vm.start, o.command, p.Max, io.Discard, o.alive.Notify) }; o.url != nil {
		p.Dials = remote.Dial(vm.transport(), o.url, o.header, p.Max)
	}
	t.Cleanup(vm.close)
	return &webHost{t: t, w: front.New(p)}
}

func (h *webHost) request(body io.Reader, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", body)
	if h.session != "" {
		r.Header.Set("Mcp-Session-Id", h.session)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (h *webHost) post(body string, headers ...string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.w.ServeHTTP(rec, h.request(strings.NewReader(body), headers...))
	return rec
}

func (h *webHost) call(id, tool string) *httptest.ResponseRecorder {
	return h.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`)
}

// begin begins a session, and returns its host and the status.
func (h *webHost) begin() (*webHost, int) {
	rec := h.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + initialize + `}`)
	return &webHost{h.t, h.w, rec.Header().Get("Mcp-Session-Id")}, rec.Code
}

// A busy session is not ended for a new one, and no more servers run than there may be sessions, also while those
// that make room are ending.
func TestHTTPMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		var most atomic.Int64 // servers at once
		vm := &virtualMachine{}
		vm.program = func(p *virtual) {
			most.Store(max(most.Load(), int64(vm.up())))
			script(func(p *virtual, m *jsonrpc.Message) bool {
				if strings.Contains(string(m.Params), `"hold"`) {
					go func() { <-held; p.answer(m, `{"content":[]}`) }()
					return true
				}
				return false
			})(p)
		}
		h := newWebHost(t, vm, "-total", "0", "-idle", "0", "--", "server")
		defer h.w.End()
		busy, _ := h.begin()
		answered := make(chan string, front.MaxSessions)
		go func() { answered <- busy.call("1", "hold").Body.String() }()
		synctest.Wait()
		time.Sleep(time.Second) // it is the one whose last message is oldest
		var all sync.WaitGroup
		var mu sync.Mutex
		var hosts []*webHost
		for range front.MaxSessions + 52 {
			all.Go(func() {
				one, code := h.begin()
				if code != http.StatusOK && code != http.StatusServiceUnavailable {
					t.Error(code)
				}
				if code == http.StatusOK {
					mu.Lock()
					hosts = append(hosts, one)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if n := most.Load(); n != front.MaxSessions {
			t.Errorf("%d servers at once", n)
		}
		if n := vm.up(); n != front.MaxSessions {
			t.Errorf("%d servers", n)
		}
		// All are busy: the next one is refused, and none ends.
		for _, one := range hosts {
			if one.call("0", "a").Code == http.StatusOK { // its session is one of those that are left
				go func() { answered <- one.call("1", "hold").Body.String() }()
			}
		}
		synctest.Wait()
		if _, code := h.begin(); code != http.StatusServiceUnavailable {
			t.Error(code)
		}
		close(held)
		for range front.MaxSessions {
			if got := <-answered; !strings.Contains(got, `"content":[]`) {
				t.Error(got)
			}
		}
		// Now the one that was unused for longest goes.
		time.Sleep(time.Second)
		busy.call("2", "a")
		last := &webHost{t, h.w, busy.session}
		for range front.MaxSessions - 1 {
			if _, code := h.begin(); code != http.StatusOK {
				t.Error(code)
			}
			time.Sleep(time.Second)
		}
		if last.call("3", "a").Code != http.StatusOK {
			t.Error("the session that was used last was ended")
		}
	})
}

// A session whose host has gone without an answer to the server's question makes room for a new one.
func TestHTTPMakesRoomForQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWebHost(t, &virtualMachine{program: script(func(p *virtual, m *jsonrpc.Message) bool {
			if m.Method == "notifications/initialized" {
				p.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			}
			return false
		})}, "--", "server")
		defer h.w.End()
		for range front.MaxSessions + 1 {
			one, code := h.begin()
			if code != http.StatusOK {
				t.Fatal(code)
			}
			one.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			synctest.Wait()
		}
	})
}

// SPEC 16.8. What waits for a client that is not there, or does not read, is bounded in bytes, and a question for which
// there is no room is answered with an error.
func TestHTTPPending(t *testing.T) {
	const said = 500
	text := strings.Repeat("x", 50_000)
	for name, m := range map[string]string{
		"notifications": `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + text + `"}}`,
		"questions":     `{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"` + text + `"}}`,
	} {
		for _, listens := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s, listens %v", name, listens), func(t *testing.T) {
				refused := 0
				h := newWebHost(t, &virtualMachine{program: script(func(p *virtual, in *jsonrpc.Message) bool {
					if in.Method == "notifications/initialized" {
						for i := range said {
							p.say(strings.Replace(m, "%d", strconv.Itoa(i), 1))
						}
					}
					if in.Error != nil {
						refused++
					}
					return in.Error != nil
				})}, "--", "server")
				defer h.w.End()
				one, _ := h.begin()
				ctx, cancel := context.WithCancel(t.Context())
				listening := one.request(nil).WithContext(ctx)
				listening.Method = http.MethodGet
				first, rec, until := httptest.NewRecorder(), httptest.NewRecorder(), make(chan struct{})
				if listens {
					go h.w.ServeHTTP(stuckClient{first, until}, listening)
					synctest.Wait()
				}
				one.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				synctest.Wait()
				cancel()
				close(until)
				synctest.Wait()
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				h.w.ServeHTTP(rec, listening.WithContext(ctx))
				synctest.Wait()
				sent := strings.Count(first.Body.String(), text)
				late := strings.Count(rec.Body.String(), text)
				if sent+late == 0 || late*len(text) > front.MaxUnsent {
					t.Errorf("%d have waited", late)
				}
				if name == "questions" && sent+late+refused != said {
					t.Errorf("%d and %d questions were sent, and %d refused, want %d in all", sent, late, refused, said)
				}
			})
		}
	}
}

// A slowBody is a body that does not come.
type slowBody struct{ until <-chan struct{} }

func (b slowBody) Read([]byte) (int, error) { <-b.until; return 0, io.ErrUnexpectedEOF }

// A client that is not known can neither send much nor have much read at once.
func TestHTTPBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newWebHost(t, &virtualMachine{program: script(nil)}, "--", "server")
		defer h.w.End()
		large := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`
		if code := h.post(large).Code; code != http.StatusRequestEntityTooLarge {
			t.Errorf("an unknown client: %d", code)
		}
		if code := h.post(large, "Mcp-Session-Id", "made up").Code; code != http.StatusRequestEntityTooLarge {
			t.Errorf("an unknown session: %d", code)
		}
		rec := httptest.NewRecorder()
		chunked := h.request(strings.NewReader(large))
		chunked.ContentLength = -1
		h.w.ServeHTTP(rec, chunked)
		if rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("of unknown length: %d", rec.Code)
		}
		one, _ := h.begin()
		if rec := one.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"` + strings.Repeat("x", 2<<20) + `"}}}`); rec.Code != http.StatusOK {
			t.Errorf("a known session: %d %s", rec.Code, rec.Body)
		}
		// Requests that stand alone share what there is, and give it back.
		for range 2 {
			shareBodies(t, h)
		}
	})
}

// shareBodies sends bodies of which two have room.
func shareBodies(t *testing.T, h *webHost) {
	until := make(chan struct{})
	var begun atomic.Int32
	var all sync.WaitGroup
	codes := make(chan int, 10)
	for range 10 {
		all.Go(func() {
			r := h.request(slowBody{until}, "Mcp-Protocol-Version", "2026-07-28")
			r.ContentLength = most
			rec := httptest.NewRecorder()
			h.w.ServeHTTP(rec, r)
			begun.Add(1)
			codes <- rec.Code
		})
	}
	synctest.Wait()
	time.Sleep(2 * front.ReadLimit)
	if got := begun.Load(); got != 10-2 {
		t.Errorf("%d were refused", got)
	}
	close(until)
	all.Wait()
	for range 10 - 2 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Error(code)
		}
	}
}

// A stuckClient is a response that nobody reads.
type stuckClient struct {
	*httptest.ResponseRecorder
	until <-chan struct{}
}

func (c stuckClient) Write(p []byte) (int, error) { <-c.until; return c.ResponseRecorder.Write(p) }

// The response to a request ends when the host cancels the request, which then has no answer.
func TestHTTPCancelled(t *testing.T) {
	for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
		bubble(t, accept, func(t *testing.T) {
			h := newWebHost(t, &virtualMachine{program: script(func(_ *virtual, m *jsonrpc.Message) bool {
				return strings.Contains(string(m.Params), `"hang"`)
			})}, "-soft", "1s", "--", "server")
			defer h.w.End()
			one, _ := h.begin()
			var all sync.WaitGroup
			post := func(id, method, params string) {
				all.Go(func() {
					rec := one.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`, "Accept", accept)
					if strings.Contains(rec.Body.String(), "jsonrpc") || strings.Contains(accept, "event") != (rec.Code == http.StatusOK) {
						t.Errorf("%s: %d %s", id, rec.Code, rec.Body)
					}
				})
			}
			rec := one.call("1", "hang")
			_, wait, _ := strings.Cut(rec.Body.String(), `{\"id\": \"`)
			wait, _, _ = strings.Cut(wait, `\`)
			post("2", "tools/call", `{"name":"hang","_meta":{"progressToken":1}}`)
			post("3", "resources/read", `{"uri":"hang","of":"hang"}`)
			post("4", "tools/call", `{"name":"wait_for_result","arguments":{"id":"`+wait+`"}}`)
			synctest.Wait()
			for _, id := range []string{"2", "3", "4"} {
				one.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			}
			begun := time.Now()
			all.Wait()
			if took := time.Since(begun); took != 0 {
				t.Errorf("took %v", took)
			}
		})
	}
}

// SPEC 3.24: a client that does not read holds up neither the end of its call, nor other clients, nor the end of
// the session.
func TestHTTPClientThatDoesNotRead(t *testing.T) {
	for _, version := range []string{"", "2026-07-28"} {
		bubble(t, "protocol "+version, func(t *testing.T) {
			note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 50_000) + `"}}`
			vm := &virtualMachine{program: script(func(p *virtual, m *jsonrpc.Message) bool {
				if strings.Contains(string(m.Params), `"flood"`) {
					go func() {
						for range 200 {
							p.say(note)
						}
					}()
					return true
				}
				return false
			})}
			h := newWebHost(t, vm, "-total", "10s", "-idle", "0", "-keep-alive", "100ms", "--", "server")
			until := make(chan struct{})
			headers, meta := []string{"Accept", "text/event-stream"}, `"_meta":{"progressToken":1}`
			one := h
			if version != "" {
				meta = standsAloneMeta
			} else {
				one, _ = h.begin()
			}
			var stuck sync.WaitGroup
			stuck.Go(func() {
				r := one.request(strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"flood",`+meta+`}}`), headers...)
				one.w.ServeHTTP(stuckClient{httptest.NewRecorder(), until}, r)
			})
			time.Sleep(30 * time.Second) // after the limit
			if !slices.Contains(vm.seen(), "notifications/cancelled") {
				t.Error("the call has not ended")
			}
			body := `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a",` + meta + `}}`
			if version != "" {
				if rec := one.post(body); !strings.Contains(rec.Body.String(), "run 1") {
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
			}
			begun := time.Now()
			h.w.End()
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("the end took %v", took)
			}
			close(until)
			stuck.Wait()
		})
	}
}

// A deafClient is a response that nobody reads, until its connection is cut.
type deafClient struct {
	*httptest.ResponseRecorder
	cut chan struct{}
}

func (c deafClient) Write([]byte) (int, error) { <-c.cut; return 0, os.ErrDeadlineExceeded }

func (c deafClient) SetWriteDeadline(at time.Time) error {
	if !at.After(time.Now()) {
		close(c.cut)
	}
	return nil
}

// What waits for all clients is bounded, also while it is being sent: those that have read nothing for longest are
// cut off, and no other.
func TestHTTPUnread(t *testing.T) {
	const size, clients, maxUnread = 100 << 10, 30, 2 << 20
	text := strings.Repeat("x", size)
	for _, version := range []string{"", "2026-07-28"} {
		for _, accept := range []string{"text/event-stream", "application/json"} {
			bubble(t, "protocol "+version+", "+accept, func(t *testing.T) {
				h := newWebHost(t, &virtualMachine{most: maxUnread / 2, program: script(func(p *virtual, m *jsonrpc.Message) bool {
					if !strings.Contains(string(m.Params), `"large"`) {
						return false
					}
					p.answer(m, `{"content":[{"type":"text","text":"`+text+`"}]}`)
					return true
				})}, "-total", "10s", "-idle", "0", "-keep-alive", "0", "--", "server")
				defer h.w.End()
				body := func(one *webHost) io.Reader {
					meta := `"_meta":{}`
					if version != "" {
						meta = standsAloneMeta
					}
					return strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"large",` + meta + `}}`)
				}
				begin := func() *webHost {
					if version != "" {
						return h
					}
					one, _ := h.begin()
					return one
				}
				for range 2 { // what was cut off, or has ended, counts no more
					var deaf []chan struct{}
					var all sync.WaitGroup
					for range clients {
						one, c := begin(), deafClient{httptest.NewRecorder(), make(chan struct{})}
						deaf = append(deaf, c.cut)
						all.Go(func() { h.w.ServeHTTP(c, one.request(body(one), "Accept", accept)) })
						synctest.Wait()
						time.Sleep(time.Second)
					}
					for i, cut := range deaf {
						select {
						case <-cut:
							if i >= clients-maxUnread/(size+1000) {
								t.Errorf("client %d was cut off", i)
							}
						default:
							if i < clients-maxUnread/(size+1000) {
								t.Errorf("client %d was not cut off", i)
							}
							close(cut)
						}
					}
					all.Wait()
				}
				one := begin()
				rec := httptest.NewRecorder()
				h.w.ServeHTTP(rec, one.request(body(one), "Accept", accept))
				if rec.Body.Len() < size {
					t.Errorf("%.100s", rec.Body)
				}
			})
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A forgetful is a server with sessions, some of which it has forgotten.
type forgetful struct {
	t       *testing.T
	unknown http.HandlerFunc // answers in a session that it does not know
	refuses http.HandlerFunc // answers initialize, if it is not nil
	broken  bool             // it knows no session
	single  bool             // it begins a session only while it knows none

	mu      sync.Mutex
	begun   int
	known   map[string]bool
	called  map[string]int
	release chan struct{} // ends the tool "hang"
}

func (s *forgetful) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

func (s *forgetful) refuse(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = h
}

func (s *forgetful) serve(w http.ResponseWriter, r *http.Request) {
	m, id := received(r), r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	if m.Method == "initialize" {
		if s.begun++; s.refuses != nil {
			refuses := s.refuses
			s.mu.Unlock()
			refuses(w, r)
			return
		}
		if id != "" {
			s.t.Errorf("initialize in session %s", id)
		}
		if s.single && len(s.known) > 0 {
			s.mu.Unlock()
			replies(400, rpc(-32600, "null", "Invalid Request: Server already initialized"))(w, r)
			return
		}
		id = fmt.Sprint("session ", s.begun)
		s.known[id] = !s.broken
	}
	known := s.known[id]
	if r.Method == http.MethodDelete && known {
		if s.known[id] = false; !s.single {
			delete(s.known, id)
		}
	}
	if m.Method == "tools/call" && known {
		s.called[string(m.ID)]++
	}
	s.mu.Unlock()
	switch {
	case m.Method == "initialize":
		begins(w, r, m, id)
	case !known && (m.IsRequest() || !s.broken):
		r.Header.Set("X-Id", string(m.ID))
		s.unknown(w, r)
	case strings.Contains(string(m.Params), `"slow"`):
		<-r.Context().Done()
	case strings.Contains(string(m.Params), `"hang"`):
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.release:
			_, _ = io.WriteString(w, "data: ")
		case <-r.Context().Done():
			return
		}
		fallthrough
	case !begins(w, r, m, id):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`+"\n\n", m.ID)
	}
}

func newForgetful(t *testing.T, unknown http.HandlerFunc) *forgetful {
	return &forgetful{t: t, unknown: unknown, known: make(map[string]bool), called: make(map[string]int), release: make(chan struct{})}
}

// peek returns the body of a request, which can then be read again.
func peek(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// replies answers with a status, a body, and a header.
func replies(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func rpc(code int, id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d,"message":%q},"id":%s}`, code, text, id)
}

// A server that has forgotten a session gets a new one, whatever the status with which it says so, and the
// request is sent again. The answers are those of servers that have been met.
func TestForgottenSession(t *testing.T) {
	const events = "text/event-stream"
	for name, unknown := range map[string]http.HandlerFunc{
		"the standard":                 replies(404, ""),
		"the standard, with a foreign": replies(404, rpc(-32600, `"server-error"`, "Session not found")),
		"examples":                     replies(400, rpc(-32000, "null", "Bad Request: No valid session ID provided")),
		"Python 2":                     replies(400, rpc(-32600, `""`, "Session not found")),
		"its own id": func(w http.ResponseWriter, r *http.Request) {
			replies(400, rpc(-32600, r.Header.Get("X-Id"), "Invalid Request: Session not found"))(w, r)
		},
		"a text":           replies(400, "Invalid session ID", "Content-Type", "text/plain"),
		"Rust":             replies(401, "Unauthorized: Session not found", "Content-Type", "text/plain"),
		"401 and nothing":  replies(401, ""),
		"410":              replies(410, "Gone"),
		"500":              replies(500, `{"error":"Error POSTing to endpoint (HTTP 400): {\"error\":{\"code\":-32000,\"message\":\"Bad Request: No valid session ID provided\"},\"id\":null}"}`),
		"503":              replies(503, rpc(-32000, "null", "Session expired. Please reinitialize."), "Retry-After", "1"),
		"200 and an event": replies(200, "event: message\ndata: {\"error\":\"Session not found\"}\n\n", "Content-Type", events),
		"200 and an error": replies(200, rpc(-32001, "null", "Session has been terminated")),
		"400 and an event": replies(400, "data: "+rpc(-32000, "null", "session_expired")+"\n\n", "Content-Type", events),
		"a verb":           replies(400, `{"error":{"code":"SESSION_NOT_FOUND"}}`),
	} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, unknown)
			s.single = true
			h := connectURL(t, s.serve)
			h.initialized()
			if len(name)%2 == 0 { // otherwise it is forgotten before it was used
				h.answered("1", "tools/call", `{"name":"a"}`)
			}
			s.forget()
			begun := time.Now()
			two, three := h.ask("2", "tools/call", `{"name":"a"}`), h.ask("3", "resources/read", `{"uri":"a"}`)
			for _, answer := range []wire{<-two, <-three} {
				if !strings.Contains(answer.raw, `"done"`) {
					t.Errorf("%s\n%s", answer.raw, h.stderr())
				}
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("took %v", took)
			}
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.called["1"] != 1-len(name)%2 || s.called["2"] != 1 || len(s.known) != 1 || s.begun != 2 {
				t.Errorf("called %v, %d sessions, %d begun", s.called, len(s.known), s.begun)
			}
		})
	}
}

// A call that was stopped before the server refused it for its session is not sent again. SPEC 16.8.
func TestStoppedCallIsNotSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		stop  func(*client)
		flags []string
	}{
		"by the host": {func(h *client) {
			h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		}, nil},
		"by a limit": {func(*client) { time.Sleep(2 * time.Second) }, []string{"-total", "2s"}},
	} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, replies(404, ""))
			refuse := make(chan struct{})
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(peek(r), `"held"`) {
					<-refuse
				}
				s.serve(w, r)
			}, tc.flags...)
			h.initialized()
			h.answered("1", "tools/call", `{"name":"a"}`)
			h.ask("2", "tools/call", `{"name":"held"}`)
			synctest.Wait()
			tc.stop(h)
			time.Sleep(100 * time.Millisecond)
			s.forget()
			close(refuse)
			h.answered("3", "tools/call", `{"name":"a"}`)
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.begun != 2 || s.called["2"] != 0 {
				t.Errorf("called %v in %d sessions\n%s", s.called, s.begun, h.stderr())
			}
		})
	}
}

// Where something else than the session can be wrong, the error is passed on, and the calls in progress are
// left alone.
func TestNotForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		unknown http.HandlerFunc
		refuses http.HandlerFunc // initialize
		want    string
	}{
		"a bad request":        {unknown: replies(400, rpc(-32600, "null", "Invalid request")), want: "Invalid request"},
		"an unknown method":    {unknown: replies(400, rpc(-32601, "2", "no method session/not_found")), want: "no method"},
		"a tool's error":       {unknown: replies(200, rpc(-32000, "2", "Session not found")), want: "Session not found"},
		"credentials":          {unknown: replies(401, `{"error":"invalid_token"}`, "WWW-Authenticate", "Bearer"), want: "401 Unauthorized: {"},
		"401, also afterwards": {unknown: replies(401, "expired"), refuses: replies(401, "expired"), want: "401 Unauthorized: expired"},
		"a trial that hangs":   {unknown: replies(410, ""), refuses: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "410 Gone"},
		"a trial without end":  {unknown: replies(410, ""), refuses: replies(200, `{"jsonrpc":"2.0","id":1,"result":{}}`), want: "410 Gone"}, // and without a session
		"the tool's own":       {unknown: replies(500, rpc(-32000, "2", "Session not found")), want: "Session not found"},
		"no such tool":         {unknown: replies(404, rpc(-32602, "2", "Unknown tool")), want: "Unknown tool"},
		"401 beside a stream":  {unknown: replies(401, ""), want: "401 Unauthorized"},
		"a crash":              {unknown: replies(500, "Internal Server Error"), want: "500 Internal Server Error"},
	} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, tc.unknown)
			h := connectURL(t, s.serve)
			h.initialized()
			one := h.ask("1", "tools/call", `{"name":"hang"}`)
			synctest.Wait()
			h.answered(`"list"`, "tools/list", `{}`)
			s.forget()
			s.refuse(tc.refuses)
			if got := h.answered("2", "tools/call", `{"name":"a"}`); !strings.Contains(got.raw, tc.want) {
				t.Errorf("%s\n%s", got.raw, h.stderr())
			}
			close(s.release)
			if got := <-one; !strings.Contains(got.raw, `"done"`) {
				t.Errorf("%s\n%s", got.raw, h.stderr())
			}
		})
	}
}

// A server that begins sessions and knows none of them answers each call at once, and is not asked for a new
// session for each.
func TestNeverKnownSession(t *testing.T) {
	for name, unknown := range map[string]http.HandlerFunc{
		"404": replies(404, "Session not found"), "400": replies(400, rpc(-32000, "null", "No valid session ID provided")), "401": replies(401, ""),
	} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, unknown)
			s.broken = true
			h := connectURL(t, s.serve)
			h.initialized()
			for i := range 30 {
				begun := time.Now()
				got := h.answered(fmt.Sprint(i), "tools/call", `{"name":"a"}`)
				if took := time.Since(begun); got.Error == nil || took > 2*time.Second {
					t.Errorf("%s after %v\n%s", got.raw, took, h.stderr())
				}
				time.Sleep(time.Second)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.begun > 10 {
				t.Errorf("%d sessions in 30 s", s.begun)
			}
		})
	}
}

// While a server refuses to begin a new session, what is sent to it fails at once and says why. It is asked
// again with the next request, and works as soon as it can.
func TestNewSessionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForgetful(t, replies(404, ""))
		h := connectURL(t, s.serve)
		h.initialized()
		h.answered("1", "tools/call", `{"name":"a"}`)
		s.forget()
		s.refuse(replies(503, "going down"))
		for i, method := range []string{"tools/call", "tools/list", "tools/call", "resources/read", "tools/call"} {
			begun := time.Now()
			got := h.answered(fmt.Sprint(10+i), method, `{"name":"a"}`)
			if took := time.Since(begun); took != 0 || !strings.Contains(got.raw, "503 Service Unavailable: going down") {
				t.Errorf("%s %s after %v\n%s", method, got.raw, took, h.stderr())
			}
			time.Sleep(time.Duration(i) * time.Minute)
		}
		time.Sleep(time.Second) // the proxy tries again every 30 s, and so at the last instant, too
		s.refuse(nil)
		begun := time.Now()
		if got := h.answered("20", "tools/call", `{"name":"a"}`); !strings.Contains(got.raw, `"done"`) || time.Since(begun) != 0 {
			t.Errorf("%s after %v\n%s", got.raw, time.Since(begun), h.stderr())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.called["10"] != 0 {
			t.Error("a call that has failed was sent later")
		}
	})
}

// A notification stream that was open and is not found any more tells that the session is forgotten, so that the
// host does not miss what the server says of its own, even if it has never asked. One that was never there does not.
func TestForgottenNotificationStream(t *testing.T) {
	for _, tc := range []struct {
		name    string
		offered bool
		after   time.Duration
	}{{"offered", true, time.Minute}, {"soon", true, time.Second}, {"not offered", false, time.Minute}} {
		bubble(t, tc.name, func(t *testing.T) {
			offered := tc.offered
			ends := make(chan struct{})
			s := newForgetful(t, replies(404, ""))
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				known := s.known[r.Header.Get("Mcp-Session-Id")]
				s.mu.Unlock()
				switch {
				case r.Method != http.MethodGet:
					s.serve(w, r)
				case !known || !offered:
					w.WriteHeader(http.StatusNotFound)
				default:
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
					_ = http.NewResponseController(w).Flush()
					select {
					case <-ends:
					case <-r.Context().Done():
					}
				}
			})
			h.initialized()
			time.Sleep(tc.after)
			s.forget()
			close(ends)
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			if want := map[bool]int{true: 2, false: 1}[offered]; s.begun != want {
				t.Errorf("%d sessions begun, want %d\n%s", s.begun, want, h.stderr())
			}
		})
	}
}

// A tool that is always refused, in a way that may mean a forgotten session, costs the calls beside it a new session
// once, and not each time.
func TestNewSessionHelpsNot(t *testing.T) {
	for name, refuses := range map[string]http.HandlerFunc{"401": replies(401, ""), "400": replies(400, "Invalid session token")} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, replies(404, ""))
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(peek(r), `"secret"`) {
					refuses(w, r)
					return
				}
				s.serve(w, r)
			})
			h.initialized()
			for i := range 10 {
				if got := h.answered(fmt.Sprint(i), "tools/call", `{"name":"a"}`); !strings.Contains(got.raw, `"done"`) {
					t.Errorf("%s\n%s", got.raw, h.stderr())
				}
				if got := h.answered(fmt.Sprint("1", i), "tools/call", `{"name":"secret"}`); got.Error == nil {
					t.Errorf("%s\n%s", got.raw, h.stderr())
				}
				time.Sleep(time.Second)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.begun != 2 {
				t.Errorf("%d sessions begun", s.begun)
			}
		})
	}
}

// A server may answer a message with 404 in each session, though it knows the session: it does not support the message.
// A new session does not help then, and the host's calls are answered without one for each of them. SPEC 16.8.
func TestRefusedInEachSession(t *testing.T) {
	for _, tc := range []struct {
		method string
		from   int // the first session in which it is refused
	}{
		{"notifications/initialized", 1}, {"logging/setLevel", 1}, {"resources/subscribe", 1}, {"prompts/list", 1},
		{"notifications/initialized", 2}, {"logging/setLevel", 2}, {"resources/subscribe", 2}, {"prompts/list", 2},
	} {
		bubble(t, fmt.Sprint(tc.method, " ", tc.from), func(t *testing.T) {
			s := newForgetful(t, replies(404, ""))
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				body := peek(r)
				s.mu.Lock()
				refuses := s.begun >= tc.from && s.begun <= 50
				s.mu.Unlock()
				if refuses && strings.Contains(body, tc.method) {
					replies(404, "")(w, r)
					return
				}
				s.serve(w, r)
			})
			h.initialized()
			if !strings.HasPrefix(tc.method, "notifications/") {
				h.ask(`"l"`, tc.method, `{"level":"debug","uri":"a"}`)
			}
			h.answered(`"a"`, "tools/call", `{"name":"a"}`)
			if tc.from > 1 {
				s.forget()
			}
			begun := time.Now()
			for i := range 20 {
				if got := h.answered(fmt.Sprint(i), "tools/call", `{"name":"a"}`); !strings.Contains(got.raw, `"done"`) {
					t.Errorf("%s\n%s", got.raw, h.stderr())
				}
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.begun > 3 {
				t.Errorf("%d sessions", s.begun)
			}
		})
	}
}

// A session that is given up is ended at the server: with the program, by a new initialize, after or on trial. The
// program waits for that, and for a session that the server is beginning.
func TestSessionsAreEnded(t *testing.T) {
	// refused has the server refuse a session that it has forgotten, while the run waits for a call.
	refused := func(h *client, s *forgetful, id string) {
		h.ask(id, "tools/call", `{"name":"slow"}`)
		synctest.Wait()
		s.forget()
		h.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		synctest.Wait()
	}
	slow := func(s *forgetful) {
		s.refuse(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(500 * time.Millisecond)
			s.mu.Lock()
			id := fmt.Sprint("slow ", s.begun)
			s.known[id] = true
			s.mu.Unlock()
			replies(200, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`, "Mcp-Session-Id", id)(w, r)
		})
	}
	for name, use := range map[string]func(h *client, s *forgetful){
		"at the end":    func(*client, *forgetful) {},
		"by initialize": func(h *client, _ *forgetful) { h.answered("9", "initialize", initialize) },
		"while another is begun": func(h *client, s *forgetful) {
			slow(s)
			h.ask("9", "initialize", initialize)
			synctest.Wait()
		},
		"while another is begun, and it is forgotten": func(h *client, s *forgetful) {
			slow(s)
			s.forget()
			h.ask("8", "tools/call", `{"name":"late"}`)
			h.ask("9", "initialize", initialize)
			time.Sleep(10 * time.Second)
		},
		"while another is begun after it": func(h *client, s *forgetful) {
			slow(s)
			s.unknown = replies(404, "")
			s.forget()
			h.ask("9", "tools/call", `{"name":"a"}`)
			synctest.Wait()
		},
		"while another is on trial": func(h *client, s *forgetful) {
			slow(s)
			h.ask("9", "tools/call", `{"name":"secret"}`)
			synctest.Wait()
		},
		"after a trial": func(h *client, s *forgetful) {
			h.answered("9", "tools/call", `{"name":"secret"}`)
		},
		"on trial, in a run": func(h *client, s *forgetful) { refused(h, s, "1") },
		"on trial, between runs": func(h *client, s *forgetful) {
			for _, id := range []string{"1", "2"} { // the second restart is delayed
				refused(h, s, id)
				time.Sleep(1500 * time.Millisecond)
			}
		},
		"on trial, without an answer": func(h *client, s *forgetful) {
			s.forget()
			s.refuse(func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				s.known["odd"] = true
				s.mu.Unlock()
				replies(200, `{"jsonrpc":"2.0",`, "Mcp-Session-Id", "odd")(w, r)
			})
			h.answered("2", "tools/call", `{"name":"a"}`)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			s := newForgetful(t, replies(410, ""))
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodDelete:
					time.Sleep(time.Second)
				case strings.Contains(peek(r), `"late"`):
					time.Sleep(100 * time.Millisecond)
					replies(404, "")(w, r)
					return
				case strings.Contains(peek(r), `"secret"`):
					replies(410, "")(w, r)
					return
				}
				s.serve(w, r)
			})
			h.initialized()
			h.answered(`"first"`, "tools/call", `{"name":"a"}`)
			use(h, s)
			begun := time.Now()
			_ = h.in.Close()
			<-h.ended
			if took := time.Since(begun); took > server.CloseLimit {
				t.Errorf("took %v", took)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.known) > 0 {
				t.Errorf("%v are left of %d\n%s", s.known, s.begun, h.stderr())
			}
		})
	}
}

// A refusal of a session that the host has replaced since leaves the new session alone.
func TestReplacedSessionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForgetful(t, replies(404, ""))
		refuse := make(chan struct{})
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(peek(r), `"held"`) {
				<-refuse
				replies(404, "")(w, r)
				return
			}
			s.serve(w, r)
		})
		h.initialized()
		h.answered("1", "tools/call", `{"name":"a"}`)
		held := h.ask("2", "tools/call", `{"name":"held"}`)
		synctest.Wait()
		h.answered("3", "initialize", initialize)
		hang := h.ask("4", "tools/call", `{"name":"hang"}`)
		synctest.Wait()
		close(refuse)
		if got := <-held; !strings.Contains(got.raw, "404 Not Found") {
			t.Error(got.raw)
		}
		close(s.release)
		if got := <-hang; !strings.Contains(got.raw, `"done"`) {
			t.Error(got.raw)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.begun != 2 {
			t.Errorf("%d sessions", s.begun)
		}
	})
}

// Requests that are refused while a session is on trial wait for that trial, and not for one of each.
func TestTrialIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newForgetful(t, replies(410, ""))
		h := connectURL(t, s.serve)
		h.initialized()
		h.answered(`"first"`, "tools/call", `{"name":"a"}`)
		s.forget()
		s.refuse(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		begun := time.Now()
		var answers []<-chan wire
		for id := range 3 {
			answers = append(answers, h.ask(fmt.Sprint(id), "tools/call", `{"name":"a"}`))
		}
		for _, answer := range answers {
			if got := <-answer; !strings.Contains(got.raw, "410 Gone") {
				t.Errorf("%s\n%s", got.raw, h.stderr())
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if took := time.Since(begun); took != 10*time.Second || s.begun != 2 {
			t.Errorf("took %v, %d sessions begun", took, s.begun)
		}
	})
}

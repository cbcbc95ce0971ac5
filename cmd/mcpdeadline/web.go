package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Bounds on the cost of hosts that have gone without a word.
const (
	maxSessions = 100  // a further session replaces the one that was idle for longest
	maxPending  = 1000 // messages of a session that wait for a stream
	streamPing  = 15 * time.Second
)

// A web serves hosts over Streamable HTTP. With a protocol that has sessions, each host has its own
// session and its own server. Requests from 2026-07-28 on stand alone and share one server.
type web struct {
	*proxy

	starting sync.Mutex // held while alone is looked up or started
	mu       sync.Mutex
	sessions map[string]*webSession
	alone    *webSession
	ended    sync.WaitGroup
}

// serveHTTP serves hosts at /mcp until ctx ends.
func serveHTTP(ctx context.Context, p *proxy, l net.Listener) error {
	w := &web{proxy: p, sessions: make(map[string]*webSession)}
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(w))
	var handler http.Handler = mux
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		handler = onlyLocalNames(mux)
	} else {
		p.logger.Warn("other machines can connect and call the tools of the server", "address", l.Addr().String())
	}
	requests, end := context.WithCancel(context.Background())
	defer end()
	server := &http.Server{
		Handler:     handler,
		ReadTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(p.logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	fmt.Fprintf(p.stderr, "listening on http://%s/mcp\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	p.shutdown(toolcall.ShutdownLimit) // answers calls before their streams end
	w.mu.Lock()
	for _, ws := range w.sessions {
		ws.stop()
	}
	if w.alone != nil {
		w.alone.stop()
	}
	w.mu.Unlock()
	w.ended.Wait()
	end()
	bounded, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// onlyLocalNames refuses requests whose host is not a name of this machine. They come from web pages
// of a site whose name has been made to resolve to 127.0.0.1.
func onlyLocalNames(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if !strings.EqualFold(host, "localhost") && (err != nil || !addr.IsLoopback()) {
			http.Error(w, "the Host header is not a name of this machine", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		w.post(rw, r)
	case http.MethodGet:
		if ws := w.sessionOf(rw, r); ws != nil {
			ws.listen(rw, r)
		}
	case http.MethodDelete:
		if ws := w.sessionOf(rw, r); ws != nil {
			w.forget(ws)
			ws.stop()
			rw.WriteHeader(http.StatusNoContent)
		}
	default:
		rw.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(rw, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
	}
}

// refuse answers with a JSON-RPC error.
func refuse(rw http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if id == nil {
		id = json.RawMessage("null")
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

// Error codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// sessionOf returns the session that a request names. If there is none, it answers the request and
// returns nil.
func (w *web) sessionOf(rw http.ResponseWriter, r *http.Request) *webSession {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		refuse(rw, http.StatusBadRequest, nil, invalidRequest, "want an Mcp-Session-Id")
		return nil
	}
	w.mu.Lock()
	ws := w.sessions[id]
	w.mu.Unlock()
	if ws == nil {
		refuse(rw, http.StatusNotFound, nil, invalidRequest, "no such session")
		return nil
	}
	return ws
}

func (w *web) post(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, int64(w.max)))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(rw, http.StatusRequestEntityTooLarge, nil, invalidRequest, err.Error())
		return
	} else if err != nil {
		return // the client has gone
	}
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		refuse(rw, http.StatusBadRequest, nil, parseError, err.Error())
		return
	}
	m := readMessage(line.Bytes())
	if !m.isRequest() && !m.isNotification() && !m.isResponse() {
		refuse(rw, http.StatusBadRequest, nil, invalidRequest, "want one JSON-RPC message")
		return
	}
	version, _ := standsAlone(m)
	var ws *webSession
	switch {
	case version >= "2026-07-28" || r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
		ws = w.together()
	case m.Method == "initialize":
		ws = w.begin(rand.Text())
		rw.Header().Set("Mcp-Session-Id", ws.id)
	default:
		if ws = w.sessionOf(rw, r); ws == nil {
			return
		}
	}
	if !m.isRequest() {
		if ws.id != "" { // without a session, a notification belongs to nothing
			ws.take(m)
		}
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	ws.answer(rw, r, m)
}

// begin starts a session and its server.
func (w *web) begin(id string) *webSession {
	ctx, stop := context.WithCancel(context.Background())
	ws := &webSession{id: id, stop: stop, over: make(chan struct{}), open: make(map[string]*downstream), used: time.Now(), aliases: make(map[string]alias)}
	ws.session = newSession(w.proxy, id, ws.route)
	w.mu.Lock()
	if id == "" {
		w.alone = ws
	} else {
		w.makeRoom()
		w.sessions[id] = ws
	}
	w.ended.Add(1)
	w.mu.Unlock()
	go func() {
		defer w.ended.Done()
		defer stop()
		if err := ws.serve(ctx); err != nil {
			fmt.Fprintln(w.stderr, "mcpdeadline:", err)
		}
		w.forget(ws)
		close(ws.over)
	}()
	return ws
}

// together returns the session that requests which stand alone share.
func (w *web) together() *webSession {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.mu.Lock()
	ws := w.alone
	w.mu.Unlock()
	if ws == nil {
		ws = w.begin("")
	}
	return ws
}

func (w *web) forget(ws *webSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone == ws {
		w.alone = nil
	} else if w.sessions[ws.id] == ws {
		delete(w.sessions, ws.id)
	}
}

// makeRoom ends the session that was idle for longest if there are too many. The caller holds w.mu.
func (w *web) makeRoom() {
	if len(w.sessions) < maxSessions {
		return
	}
	var victim *webSession
	var since time.Time
	for _, ws := range w.sessions {
		ws.streams.Lock()
		used := ws.used
		if len(ws.open) > 0 || ws.get != nil {
			used = time.Now()
		}
		ws.streams.Unlock()
		if victim == nil || used.Before(since) {
			victim, since = ws, used
		}
	}
	delete(w.sessions, victim.id)
	victim.stop()
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Bounds on the cost of hosts that have gone without a word.
const (
	maxSessions = 100 // and servers; a further session replaces the one that was idle for longest
	streamPing  = 15 * time.Second
	readLimit   = 10 * time.Second // for a message
	// maxUnknown bounds a message of a client that has no session: before one is known, it has little to say.
	maxUnknown = 1 << 20
	// roomLimit is how long a new session waits for the end of a server that makes room for it.
	roomLimit = server.CloseLimit + server.TermLimit + 5*time.Second
)

// A web serves hosts over Streamable HTTP. With a protocol that has sessions, each host has its own
// session and its own server. Requests from 2026-07-28 on stand alone and share one server.
type web struct {
	*calls.Proxy

	reading  *budget // for the messages that are being read for all clients at the same time
	audience audience

	starting  sync.Mutex // held while alone is looked up or started
	mu        sync.Mutex
	sessions  map[string]*webSession
	alone     *webSession
	running   int           // servers of sessions, also of those that are ending
	fewer     chan struct{} // closed, and replaced, when running has become less
	newcomers int           // sessions that wait for the end of a server
	closing   bool          // no session begins any more
	ended     sync.WaitGroup
}

func newWeb(p *calls.Proxy) *web {
	two := 2 * int64(p.Max) // messages that are as large as can be
	return &web{
		Proxy: p, sessions: make(map[string]*webSession), fewer: make(chan struct{}),
		reading: newBudget(two), audience: audience{most: two},
	}
}

// serveHTTP serves hosts at /mcp until ctx ends.
func serveHTTP(ctx context.Context, p *calls.Proxy, l net.Listener) error {
	w := newWeb(p)
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(w))
	var handler http.Handler = mux
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		handler = onlyLocalNames(mux)
	} else {
		p.Logger.Warn("other machines can connect and call the tools of the server", "address", l.Addr().String())
	}
	requests, end := context.WithCancel(context.Background())
	defer end()
	server := &http.Server{
		Handler:     handler,
		ReadTimeout: readLimit,
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(p.Logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	fmt.Fprintf(p.Stderr, "listening on http://%s/mcp\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	p.Shutdown(toolcall.ShutdownLimit) // answers calls before their streams end
	w.mu.Lock()
	w.closing = true
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

// A budget is memory that requests share.
type budget struct {
	mu    sync.Mutex
	left  int64
	freed chan struct{} // closed, and replaced, when there is more
}

func newBudget(size int64) *budget { return &budget{left: size, freed: make(chan struct{})} }

// take waits until n bytes are left, and takes them. It reports false if ctx ends first.
func (b *budget) take(ctx context.Context, n int64) bool {
	for {
		b.mu.Lock()
		if b.left >= n {
			b.left -= n
			b.mu.Unlock()
			return true
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	close(b.freed)
	b.freed = make(chan struct{})
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

// known returns the session that a request names, or nil.
func (w *web) known(r *http.Request) *webSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions[r.Header.Get("Mcp-Session-Id")]
}

// sessionOf returns the session that a request names. If there is none, it answers the request and
// returns nil.
func (w *web) sessionOf(rw http.ResponseWriter, r *http.Request) *webSession {
	if r.Header.Get("Mcp-Session-Id") == "" {
		refuse(rw, http.StatusBadRequest, nil, jsonrpc.InvalidRequest, "want an Mcp-Session-Id")
		return nil
	}
	ws := w.known(r)
	if ws == nil {
		refuse(rw, http.StatusNotFound, nil, jsonrpc.InvalidRequest, "no such session")
	}
	return ws
}

func (w *web) post(rw http.ResponseWriter, r *http.Request) {
	line, give, ok := w.body(rw, r)
	defer give()
	if !ok {
		return
	}
	m := jsonrpc.Parse(line)
	if !m.IsRequest() && !m.IsNotification() && !m.IsResponse() {
		if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
			refuse(rw, http.StatusBadRequest, nil, jsonrpc.ParseError, err.Error())
			return
		}
		refuse(rw, http.StatusBadRequest, nil, jsonrpc.InvalidRequest, "want one JSON-RPC message")
		return
	}
	version, _ := jsonrpc.StandsAlone(m)
	var ws *webSession
	switch {
	case version >= "2026-07-28" || r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28":
		if ws = w.together(); ws == nil {
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, "mcpdeadline is shutting down")
			return
		}
	case m.Method == "initialize":
		if ws = w.begin(r.Context(), rand.Text()); ws == nil {
			rw.Header().Set("Retry-After", "10")
			refuse(rw, http.StatusServiceUnavailable, m.ID, jsonrpc.InternalError, fmt.Sprintf("there are %d sessions, and all of them are in use", maxSessions))
			return
		}
		rw.Header().Set("Mcp-Session-Id", ws.id)
	default:
		if ws = w.sessionOf(rw, r); ws == nil {
			return
		}
	}
	if !m.IsRequest() {
		if ws.id != "" { // without a session, a notification belongs to nothing
			ws.take(m)
		}
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	ws.answer(rw, r, m, give)
}

// body reads the message in a request, as one line. If it cannot, it answers the request. The caller calls give
// when the message needs no memory any more.
func (w *web) body(rw http.ResponseWriter, r *http.Request) (line []byte, give func(), ok bool) {
	most := int64(w.Max)
	if w.known(r) == nil && r.Header.Get("Mcp-Protocol-Version") < "2026-07-28" {
		most = min(most, maxUnknown)
	}
	size := most
	if r.ContentLength >= 0 {
		size = r.ContentLength
	}
	if size > most {
		refuse(rw, http.StatusRequestEntityTooLarge, nil, jsonrpc.InvalidRequest, fmt.Sprintf("a message of %d bytes, where %d are allowed", size, most))
		return nil, func() {}, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), readLimit)
	defer cancel()
	if !w.reading.take(ctx, size) {
		rw.Header().Set("Retry-After", "1")
		refuse(rw, http.StatusServiceUnavailable, nil, jsonrpc.InternalError, "too many large messages at the same time")
		return nil, func() {}, false
	}
	give = sync.OnceFunc(func() { w.reading.give(size) })
	// It may have waited, and reading has its own limit.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(readLimit))
	var text bytes.Buffer
	text.Grow(int(min(size, 64<<10)) + bytes.MinRead)
	_, err := text.ReadFrom(http.MaxBytesReader(rw, r.Body, most))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(rw, http.StatusRequestEntityTooLarge, nil, jsonrpc.InvalidRequest, err.Error())
		return nil, give, false
	} else if err != nil {
		return nil, give, false // the client has gone
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(text.Bytes(), jsonrpc.ByteOrderMark))
	jsonrpc.OneLine(line)
	return line, give, true
}

// begin starts a session and its server. If there are too many, it ends the one that was unused for longest and
// waits for the end of its server. It returns nil if all are in use, or ctx ends first.
func (w *web) begin(ctx context.Context, id string) *webSession {
	ctx, cancel := context.WithTimeout(ctx, roomLimit)
	defer cancel()
	w.mu.Lock()
	for id != "" && w.running >= maxSessions && !w.closing {
		// Those that are ending make room too, for those who wait already.
		if len(w.sessions)+w.newcomers >= maxSessions && !w.makeRoom() {
			w.mu.Unlock()
			return nil
		}
		w.newcomers++
		fewer := w.fewer
		w.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
		}
		w.mu.Lock()
		w.newcomers--
		if ctx.Err() != nil {
			break
		}
	}
	if w.closing || ctx.Err() != nil {
		w.mu.Unlock()
		return nil
	}
	serving, stop := context.WithCancel(context.Background())
	ws := &webSession{id: id, audience: &w.audience, over: make(chan struct{}), open: make(map[string]*downstream), pending: jsonrpc.NewMailbox(), used: time.Now(), aliases: make(map[string]alias)}
	ws.read.L = &ws.streams
	ws.stop = func() { stop(); ws.ease() }
	ws.Session = calls.NewSession(w.Proxy, id, ws.route)
	ws.Room = ws.awaitClients
	if id == "" {
		w.alone = ws
	} else {
		w.sessions[id] = ws
		w.running++
	}
	w.ended.Add(1)
	w.mu.Unlock()
	go func() {
		defer w.ended.Done()
		defer ws.stop()
		if err := ws.Serve(serving); err != nil {
			fmt.Fprintln(w.Stderr, "mcpdeadline:", err)
		}
		w.forget(ws)
		close(ws.over)
		if id != "" {
			w.mu.Lock()
			w.running--
			close(w.fewer)
			w.fewer = make(chan struct{})
			w.mu.Unlock()
		}
	}()
	return ws
}

// together returns the session that requests which stand alone share, or nil if the proxy ends.
func (w *web) together() *webSession {
	w.starting.Lock()
	defer w.starting.Unlock()
	w.mu.Lock()
	ws := w.alone
	w.mu.Unlock()
	if ws == nil {
		ws = w.begin(context.Background(), "")
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

// makeRoom ends the session that was unused for longest. One with a client that listens is ended only if there is
// no other, and one that is busy never. It reports false if all are busy. The caller holds w.mu.
func (w *web) makeRoom() bool {
	var victim *webSession
	var victimListens bool
	var since time.Time
	for _, ws := range w.sessions {
		used, listens, busy := ws.standing()
		if busy {
			continue
		}
		if victim == nil || victimListens && !listens || victimListens == listens && used.Before(since) {
			victim, victimListens, since = ws, listens, used
		}
	}
	if victim == nil {
		return false
	}
	delete(w.sessions, victim.id)
	victim.stop()
	return true
}

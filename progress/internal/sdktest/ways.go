package sdktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// A Way is a transport and a protocol version by which a peer reaches a server.
type Way struct {
	Name      string
	Version   string
	Stateless bool // HTTP without sessions
	open      func(*Peer, Server)
	Handler   func(Server) http.Handler // returns the HTTP handler of a way that only one SDK has; nil for other ways
	Mute      bool                      // no progress reaches the client
	Client    string                    // the name of the client; "" means "peer"
}

func (w Way) lines() bool { return strings.HasPrefix(w.Name, "lines") }
func (w Way) http() bool  { return strings.HasPrefix(w.Name, "HTTP") }

// Ways has the ways that all SDKs support.
var Ways = []Way{
	{Name: "lines " + Old, Version: Old, open: (*Peer).overLines},
	{Name: "lines " + New, Version: New, open: (*Peer).overLines},
	{Name: "HTTP " + Old, Version: Old, open: (*Peer).overHTTP},
	{Name: "HTTP stateless " + Old, Version: Old, Stateless: true, open: (*Peer).overHTTP},
	{Name: "HTTP " + New, Version: New, Stateless: true, open: (*Peer).overHTTP},
	{Name: "SSE", Version: Old, open: (*Peer).overSSE},
}

func (p *Peer) overLines(srv Server) {
	in, out := NewPipe(), NewPipe()
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.over = stop, make(chan error, 1)
	p.gone.Go(func() {
		p.over <- srv.Serve(ctx, in, out, 0)
		_ = out.Close()
	})
	p.post = func(_ *Exchange, message []byte) { _, _ = in.Write(append(message, '\n')) }
	p.cut = func() { _, _ = in.Close(), out.Close() }
	p.leave = func() { _ = in.Close() }
	p.end = func() { stop(); srv.Close() }
	p.gone.Go(func() {
		eachLine(out, p.take)
		p.lost()
	})
}

// eachLine calls f with each line that is not empty.
func eachLine(r io.Reader, f func(line []byte)) {
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			f(line)
		}
		if err != nil {
			return
		}
	}
}

// eachEvent calls f with the data of each event of a stream, if the data are not empty.
func eachEvent(r io.Reader, f func(data []byte)) {
	eachLine(r, func(line []byte) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(data) > 0 {
			f(data)
		}
	})
}

func (p *Peer) request(ctx context.Context, client *http.Client, method string, x *Exchange, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost/", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	p.mu.Lock()
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	p.mu.Unlock()
	if x == nil || x.Method != "initialize" {
		r.Header.Set("Mcp-Protocol-Version", p.Version)
	}
	if x != nil && p.Version == New {
		r.Header.Set("Mcp-Method", x.Method)
		if x.name != "" {
			r.Header.Set("Mcp-Name", x.name)
		}
	}
	res, err := client.Do(r)
	if err == nil && res.Header.Get("Mcp-Session-Id") != "" {
		p.mu.Lock()
		p.session = res.Header.Get("Mcp-Session-Id")
		p.mu.Unlock()
	}
	return res, err
}

func (p *Peer) overHTTP(srv Server) { p.postTo(NewNet(srv.HTTP(p.Stateless)), srv.Close) }

// postTo connects p over Streamable HTTP to a server that may have other peers too. end closes the server.
func (p *Peer) postTo(web *Net, end func()) {
	p.web = web
	client := web.Client()
	do := func(x *Exchange, message []byte) {
		res, err := p.request(x.ctx, client, http.MethodPost, x, message)
		if err == nil {
			x.Status = res.StatusCode
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				eachEvent(res.Body, p.take)
			} else if body, _ := io.ReadAll(res.Body); json.Valid(body) && len(body) > 0 {
				p.take(body)
			} else if x.ID != "" && len(body) > 0 {
				p.t.Logf("%s %s: %s %s", x.Method, x.name, res.Status, body)
			}
			_ = res.Body.Close()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, x.ID)
		x.settle(nil)
		x.hangUp()
	}
	p.post = func(x *Exchange, message []byte) {
		if x.ID == "" { // a notification or an answer is sent before the next message
			do(x, message)
			return
		}
		p.gone.Go(func() { do(x, message) })
	}
	p.cut = web.Cut
	p.leave = func() {
		if res, err := p.request(context.Background(), client, http.MethodDelete, nil, nil); err == nil {
			_ = res.Body.Close()
		}
	}
	p.end = func() {
		end()
		web.End()
		client.CloseIdleConnections()
	}
}

// listen opens the standalone stream of the session. hangUp closes it.
func (p *Peer) listen() (hangUp func()) {
	ctx, cancel := context.WithCancel(context.Background())
	client := p.web.Client()
	res, err := p.request(ctx, client, http.MethodGet, nil, nil)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("no stream: %v %v", res, err)
	}
	p.gone.Go(func() {
		eachEvent(res.Body, p.take)
		_ = res.Body.Close()
		client.CloseIdleConnections()
	})
	return cancel
}

func (p *Peer) overSSE(srv Server) {
	p.web = NewNet(srv.SSE())
	client := p.web.Client()
	res, err := client.Get("http://localhost/sse")
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("no stream: %v %v", res, err)
	}
	endpoint := make(chan string, 1)
	p.gone.Go(func() {
		eachEvent(res.Body, func(data []byte) {
			if data[0] == '{' {
				p.take(data)
			} else {
				endpoint <- string(data)
			}
		})
		_ = res.Body.Close()
		p.lost()
	})
	url := <-endpoint
	if strings.HasPrefix(url, "/") {
		url = "http://localhost" + url
	}
	p.post = func(_ *Exchange, message []byte) {
		if res, err := client.Post(url, "application/json", bytes.NewReader(message)); err == nil {
			_ = res.Body.Close()
		}
	}
	p.cut = p.web.Cut
	p.leave = p.web.Cut
	p.end = func() {
		srv.Close()
		p.web.End()
		client.CloseIdleConnections()
	}
}

// Package gateway implements an HTTP server for tests that passes requests on to another handler and fails on demand.
package gateway

import (
	"bytes"
	"net"
	"net/http"
	"sync"
)

// A Gateway passes requests on to Next, except those that are to fail. The method of a request is the
// value of its header Mcp-Method. A Gateway is safe for concurrent use.
type Gateway struct {
	Next http.Handler

	fail  func(w http.ResponseWriter)
	mu    sync.Mutex
	more  *sync.Cond     // signalled for each request
	times map[string]int // requests that are still to fail, by method
	seen  map[string]int // requests received, by method
}

// New returns a Gateway that lets fail answer the first requests of some methods. times is the number of such requests
// by method; the Gateway changes it. Set Next before use.
func New(fail func(w http.ResponseWriter), times map[string]int) *Gateway {
	g := &Gateway{fail: fail, times: times, seen: make(map[string]int)}
	g.more = sync.NewCond(&g.mu)
	return g
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Header.Get("Mcp-Method")
	g.mu.Lock()
	g.seen[method]++
	g.more.Broadcast()
	fails := g.times[method] > 0
	if fails {
		g.times[method]--
	}
	g.mu.Unlock()
	if fails {
		g.fail(w)
		return
	}
	g.Next.ServeHTTP(w, r)
}

// Count returns the number of requests of a method that the Gateway has received.
func (g *Gateway) Count(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[method]
}

// Await waits until the Gateway has received n requests of a method.
func (g *Gateway) Await(method string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.seen[method] < n {
		g.more.Wait()
	}
}

// Status returns a function for New that answers with an HTTP status.
func Status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, http.StatusText(code), code) }
}

// Reset is a function for New that resets the connection without an answer, as if the server had been killed.
func Reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if c, ok := c.(*net.TCPConn); ok { // package simnet has other connections
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

// CutOff is a function for New that begins a stream of server-sent events and closes the connection before the answer.
func CutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(": hello\n\n"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Saying replaces the first from by to in each write of Next that answers a request of one method. Call it before the
// Gateway gets requests.
func (g *Gateway) Saying(method, from, to string) {
	next := g.Next
	g.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == method {
			w = &saying{w, []byte(from), []byte(to)}
		}
		next.ServeHTTP(w, r)
	})
}

type saying struct {
	http.ResponseWriter
	from, to []byte
}

func (w *saying) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.Replace(p, w.from, w.to, 1))
	return len(p), err
}

func (w *saying) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *saying) Unwrap() http.ResponseWriter { return w.ResponseWriter }

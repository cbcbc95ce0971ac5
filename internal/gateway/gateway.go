// Package gateway is an HTTP server in front of another one, which fails on demand. It is for tests.
package gateway

import (
	"bytes"
	"net"
	"net/http"
	"sync"
)

// A Gateway passes requests on to Next, except those that are to fail. It distinguishes them by their
// Mcp-Method. It is safe for concurrent use.
type Gateway struct {
	Next http.Handler

	fail  func(w http.ResponseWriter)
	mu    sync.Mutex
	more  *sync.Cond // for a request
	times map[string]int
	seen  map[string]int
}

// New returns a Gateway that answers the next requests of some methods by fail: times says how many.
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

// Count returns how many requests of a method have come.
func (g *Gateway) Count(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[method]
}

// Await waits for the nth request of a method.
func (g *Gateway) Await(method string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.seen[method] < n {
		g.more.Wait()
	}
}

// Status fails with an HTTP status.
func Status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, http.StatusText(code), code) }
}

// Reset fails as a process does that is killed: the connection ends.
func Reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if c, ok := c.(*net.TCPConn); ok { // a network in memory has other connections
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

// CutOff fails with a stream of events that ends before its answer.
func CutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(": hello\n\n"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Saying replaces from by to in the answers to the requests of one method, once in each write of Next.
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

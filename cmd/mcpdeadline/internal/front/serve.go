package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Serve serves hosts on l, at /mcp, until ctx ends. It then answers the calls, ends all sessions and returns nil. It
// returns an error if l fails.
func Serve(ctx context.Context, p *calls.Proxy, l net.Listener) error {
	f := New(p)
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(f))
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
		ReadTimeout: ReadLimit,
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(p.Logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	fmt.Fprintf(p.Stderr, "listening on http://%s/mcp\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select { // the error of Serve wins, here or at the end
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	p.Shutdown(toolcall.ShutdownLimit) // before End, so that calls are answered
	f.End()
	end()
	bounded, cancel := context.WithTimeout(context.Background(), host.ReadLimit)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// End ends all sessions, and waits until their servers have ended. No session begins after End.
func (f *Front) End() {
	f.mu.Lock()
	f.closing = true
	for _, s := range f.sessions {
		s.stop()
	}
	if f.alone != nil {
		f.alone.stop()
	}
	f.mu.Unlock()
	f.ended.Wait()
}

// onlyLocalNames refuses requests whose Host header is not a loopback name or address. It prevents DNS rebinding, in
// which a web page makes its own name resolve to 127.0.0.1.
func onlyLocalNames(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if !strings.EqualFold(name, "localhost") && (err != nil || !addr.IsLoopback()) {
			http.Error(w, "the Host header is not a name of this machine", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// serveHTTP serves clients on this machine that have the token, until ctx ends.
func serveHTTP(ctx context.Context, d *desk, stderr io.Writer) error {
	if d.token == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return fmt.Errorf("-token-file: %w", err)
		}
		d.token = filepath.Join(dir, "shell-token")
	}
	token, err := loadToken(d.token)
	if err != nil {
		return fmt.Errorf("-token-file: %w", err)
	}
	l, err := listen(ctx, d.http)
	if err != nil {
		return fmt.Errorf("-http: %w", err)
	}
	s := newServer(d)
	p := newPresence(d, s)
	s.AddReceivingMiddleware(bound(s))
	// With an EventStore, a client whose connection was lost can resume the stream of an answer.
	options := &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, options)
	mux := http.NewServeMux()
	mux.Handle("/mcp", p.handler(mcpsdk.WrapHTTP(streamable)))
	var drain toolcall.Drain
	server := &http.Server{
		Handler:     guard(l.Addr().(*net.TCPAddr), token, d.logger, drain.Handler(mux)),
		ReadTimeout: 10 * time.Second, // of a request with its body; the limits of the tools bound the answer
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(d.logger.Handler(), slog.LevelWarn),
	}
	fmt.Fprintf(stderr, "listening on http://%s/mcp, the token is in %s\n", l.Addr(), d.token)

	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolcall.ShutdownLimit)
	defer cancel()
	if err := drain.Shutdown(bounded); err != nil { // answers calls before their connections end
		d.logger.Warn("shutdown", slog.Any("error", err))
	}
	bounded, cancel = context.WithTimeout(bounded, time.Second)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen listens on a loopback address. It returns an error for any other address.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: want HOST:PORT", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: want a loopback address, such as 127.0.0.1:8138. To reach this server from elsewhere, use ssh -L", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if a := l.Addr().(*net.TCPAddr); !a.IP.IsLoopback() { // whatever the machine takes localhost for
		l.Close()
		return nil, fmt.Errorf("%s is %v, which is no loopback address", addr, a)
	}
	return l, nil
}

// guard passes a request to next if its Host is this server, it does not come from a web page of another origin, and it
// has the token. The check of Host prevents DNS rebinding, and the check of Origin requests of web pages.
func guard(at *net.TCPAddr, token string, logger *slog.Logger, next http.Handler) http.Handler {
	port := fmt.Sprint(at.Port)
	hosts := map[string]bool{at.String(): true, net.JoinHostPort("localhost", port): true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(code int, why string) {
			logger.Warn("refused", slog.String("why", why), slog.String("from", r.RemoteAddr), slog.String("host", r.Host), slog.String("origin", r.Header.Get("Origin")))
			http.Error(w, why, code)
		}
		origins := r.Header.Values("Origin")
		switch {
		case !hosts[r.Host]:
			refuse(http.StatusForbidden, "this server is not the host of the request")
		case len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+r.Host:
			refuse(http.StatusForbidden, "requests of web pages are not allowed")
		case len(r.Header.Values("Authorization")) > 1 || !has(r, token):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(http.StatusUnauthorized, "want the token of the server: Authorization: Bearer TOKEN")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// maxSessions is the largest number of clients at once.
const maxSessions = 64

// bound refuses sessions beyond maxSessions.
func bound(s *mcp.Server) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				n := 0
				for range s.Sessions() {
					n++
				}
				if n > maxSessions {
					return nil, fmt.Errorf("%d clients are connected, and this server takes no more", n-1)
				}
			}
			return next(ctx, method, req)
		}
	}
}

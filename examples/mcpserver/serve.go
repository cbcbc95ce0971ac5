package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// serveStdio serves one client until it closes our input, or ctx ends.
func serveStdio(ctx context.Context, s *server) error {
	// The calls first: their answers should still go out.
	served, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		s.wait()
		end()
	})()
	err := s.Run(served, mcpsdk.WrapTransport(&mcp.StdioTransport{}))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serveHTTP serves clients at http://addr/mcp until ctx ends. A session outlives calls with
// these limits.
func serveHTTP(ctx context.Context, s *server, addr string, limits timeout.Config, stderr io.Writer, logger *slog.Logger) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host == "" {
		host = "127.0.0.1" // whoever can connect can run commands
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		logger.Warn("other machines can connect, and run commands on this one", slog.String("address", a.String()))
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(handler(s.Server, limits)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(stderr, "listening on http://%s/mcp\n", l.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.wait()
	for session := range s.Sessions() {
		go session.Close() // ends the stream that it may have
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdownLimit is for clients that do not read their answers, and for connections on which
// nothing has been asked yet.
const shutdownLimit = time.Second

// handler serves each client in the way of its protocol. From 2026-07-28 on there are no
// sessions: each request stands alone, and a client that is gone is an abort. Before, there
// are, and a client that is gone may come back; it cancels with a message.
func handler(s *mcp.Server, limits timeout.Config) http.Handler {
	server := func(*http.Request) *mcp.Server { return s }
	old := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		SessionTimeout: limits.SessionTimeout(),
	})
	current := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
	})
	return mcpsdk.WrapHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			current.ServeHTTP(w, r)
			return
		}
		old.ServeHTTP(w, r)
	}))
}

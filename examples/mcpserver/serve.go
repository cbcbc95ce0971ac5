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
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// serveHTTP serves clients at http://addr/mcp until ctx ends. A session outlives calls with
// these limits.
func serveHTTP(ctx context.Context, s *mcp.Server, addr string, limits timeout.Config, stderr io.Writer, logger *slog.Logger) error {
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
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(handler(s, limits)))
	var drain toolcall.Drain
	server := webServer(drain.Handler(mux))
	fmt.Fprintf(stderr, "listening on http://%s/mcp\n", l.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolcall.ShutdownLimit)
	defer cancel()
	if err := drain.Shutdown(bounded); err != nil { // the answers first
		logger.Warn("shutdown", slog.Any("error", err))
	}
	bounded, cancel = context.WithTimeout(bounded, shutdownLimit)
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

// webServer bounds what a client costs that does not go on: a request must be here soon, with
// its body, and a connection without one is closed. There is no WriteTimeout, which would count
// from the request: how long an answer may take is up to the limits of the tool.
func webServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:     h,
		ReadTimeout: 10 * time.Second, // the header's too
		IdleTimeout: 2 * time.Minute,
	}
}

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

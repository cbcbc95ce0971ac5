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
)

// serveHTTP serves clients at http://addr/mcp until ctx ends. A session that is not used for the
// given time is closed; 0 means never.
func serveHTTP(ctx context.Context, s *mcp.Server, addr string, session time.Duration, stderr io.Writer, logger *slog.Logger) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host == "" {
		host = "127.0.0.1" // a client that can connect can run commands
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		logger.Warn("other machines can connect, and run commands on this one", slog.String("address", a.String()))
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(handler(s, session)))
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
	if err := drain.Shutdown(bounded); err != nil { // answers calls before their connections end
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

// shutdownLimit bounds the wait for clients that do not read their answers, and for connections without
// a request.
const shutdownLimit = time.Second

// webServer bounds the cost of clients that stall: a request with its body has to arrive soon, and an
// idle connection is closed. There is no WriteTimeout, which would count from the request: the limits
// of the tool decide how long an answer may take.
func webServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:     h,
		ReadTimeout: 10 * time.Second, // includes the header
		IdleTimeout: 2 * time.Minute,
	}
}

// handler serves each client according to its protocol. From 2026-07-28 on there are no sessions: each
// request stands alone, and a client that disconnects aborts its call. In older protocols a client may
// come back to its session, and cancels with a message.
func handler(s *mcp.Server, session time.Duration) http.Handler {
	server := func(*http.Request) *mcp.Server { return s }
	old := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		SessionTimeout: session,
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

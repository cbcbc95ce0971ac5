package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// servePage serves the page that shows what the tools are doing at http://addr/debug/tools, on
// a server of its own: who can call tools over HTTP is not who may look at them. Only this
// machine is answered.
func servePage(addr string, stderr io.Writer, logger *slog.Logger) (stop func() error, _ error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(inspect.Path, inspect.Handler(inspect.WithAbort()))
	// The page lifts these for itself where it is live.
	server := &http.Server{
		Handler:      mux,
		ReadTimeout:  10 * time.Second,
		WriteTimeout: 10 * time.Second,
		IdleTimeout:  2 * time.Minute,
		ErrorLog:     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go server.Serve(l)
	fmt.Fprintf(stderr, "what runs: http://%s%s\n", l.Addr(), inspect.Path)
	return server.Close, nil // at once: a page that is live has no end
}

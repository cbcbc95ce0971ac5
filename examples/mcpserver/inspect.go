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

// servePage serves the page of running calls at http://addr/debug/tools, on its own server: clients that
// may call tools over HTTP may not look at the calls of others. It answers only this machine.
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
	mux.Handle(inspect.Path, inspect.Handler(inspect.Options{Abort: true}))
	// The handler removes the read and write limits for a page that updates itself.
	server := &http.Server{
		Handler:      mux,
		ReadTimeout:  10 * time.Second,
		WriteTimeout: 10 * time.Second,
		IdleTimeout:  2 * time.Minute,
		ErrorLog:     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go server.Serve(l)
	fmt.Fprintf(stderr, "running calls: http://%s%s\n", l.Addr(), inspect.Path)
	return server.Close, nil // Shutdown would wait for pages that update themselves
}

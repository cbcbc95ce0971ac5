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

// listen takes an address without a host for one of this machine only.
func listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// servePage serves the page that shows what runs at http://addr/debug/tools, to browsers of this
// machine.
func servePage(addr string, stderr io.Writer, logger *slog.Logger) (stop func() error, _ error) {
	l, err := listen(addr)
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

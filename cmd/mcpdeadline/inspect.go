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

// listen listens on the TCP address addr. The default host is 127.0.0.1. key is the name of the flag, for errors.
func listen(key, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &settingError{key, fmt.Sprintf("%q", addr), `an address such as "127.0.0.1:8137" or ":8137"`}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w", key, addr, err)
	}
	return l, nil
}

// servePage serves the page of running calls on l, at /debug/tools, until stop is called. It does not block.
func servePage(l net.Listener, stderr io.Writer, logger *slog.Logger) (stop func() error) {
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
	return server.Close // Shutdown would wait for pages that update themselves
}

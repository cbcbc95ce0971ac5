package main

import (
	"io"
	"net"
	"net/http"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// A system holds the functions of the operating system that the program uses. Tests use a simulated system.
type system struct {
	most      int                                          // largest message, in bytes
	start     server.Start                                 // starts a server
	listen    func(key, addr string) (net.Listener, error) // for -http and -inspect
	transport func() http.RoundTripper                     // returns the transport for a server at a URL
	hungUp    func(stdin io.Reader) (gone func() bool)     // see host.HungUp
	lookPath  func(file string) (path string, err error)   // finds the command of a server
}

// machine is the system that the program runs on.
var machine = system{jsonrpc.MaxMessage, server.StartProcess, listen, newTransport, host.HungUp, exec.LookPath}

func newTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	return transport
}

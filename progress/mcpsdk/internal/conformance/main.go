// Conformance is an MCP server with the tools that the public conformance runner calls by
// name, so that its scenarios run through the middleware of package mcpsdk. It serves
// Streamable HTTP with sessions, and prints its URL on stderr.
//
//	conformance [-bare | -tasks] [-http address]
//
// With -bare the server has no middleware: a scenario that fails there too does not fail because of the middleware.
// With -tasks the server has the tools of the scenarios for tasks, and no sessions. The programs that run it are in the
// interop directory of the repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func main() {
	bare := flag.Bool("bare", false, "leave the middleware out")
	address := flag.String("http", "127.0.0.1:0", "the `address` to listen on")
	tasks := flag.Bool("tasks", false, "serve the tools of the scenarios for tasks")
	flag.Parse()
	var h http.Handler
	if *tasks {
		h = taskHandler()
	} else {
		h = handler(*bare)
	}
	if err := serve(*address, h); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func handler(bare bool) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "tooldeadline-conformance", Version: "1"}, nil)
	addContent(s)
	addSteps(s, bare)
	addQuestions(s)
	// One scenario resumes a stream that the server has closed, which needs an event store.
	var h http.Handler = mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	if !bare {
		// The tools take some 100 ms, so no limit stops them even on a busy machine. The interval is
		// shorter than the time between two updates, so that all of them are sent.
		mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, Interval: time.Millisecond})
		h = mcpsdk.WrapHTTP(h)
	}
	return h
}

func serve(address string, h http.Handler) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	if err := http.Serve(l, mux); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Conformance is an MCP server with the tools that the public conformance runner calls by
// name, so that its scenarios run through the middleware of package mcpsdk. It serves
// Streamable HTTP with sessions, and prints its URL on stderr.
//
//	conformance [-bare | -tasks] [-http address]
//
// With -bare it is the same server without the middleware: a test that fails there too is not the middleware's doing.
// With -tasks it has the tools of the scenarios for tasks, without sessions. The repository's interop directory has
// what runs it.
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
	// The scenario of a stream that the server closes resumes it from the event store.
	var h http.Handler = mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	if !bare {
		// The runner's tools take some 100 ms: on a busy machine no limit gets in the way.
		// The interval is less than what lies between two updates, so that all arrive.
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

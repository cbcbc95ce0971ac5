// Pageserver serves the page of package inspect to a test that drives a browser: at /debug/tools, and at /abort with
// Options.Abort set. It reads commands from its standard input, one per line, and exits when the input ends:
//
//	start NAME N IDLE   start N executions that beat once and then are silent, under an idle limit
//	observe NAME N IDLE the same, but the limits are only observed
//	end NAME            let those executions return
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "pageserver:", err)
		os.Exit(1)
	}
}

func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	http.Handle("/abort", inspect.Handler(inspect.Options{Abort: true}))
	server := &http.Server{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go server.Serve(l)
	fmt.Fprintf(os.Stderr, "listening on http://%s\n", l.Addr())

	ends := make(map[string]chan struct{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var what, name, idle string
		var n int
		switch fmt.Sscan(lines.Text(), &what, &name, &n, &idle); what {
		case "start", "observe":
			limit, err := time.ParseDuration(idle)
			if err != nil {
				return err
			}
			ends[name] = make(chan struct{})
			opts := []timeout.Option{timeout.WithName(name), timeout.Config{Idle: limit, Total: time.Hour}}
			if what == "observe" {
				opts = append(opts, timeout.WithObserveOnly())
			}
			start(n, ends[name], opts)
		case "end":
			close(ends[name])
		default:
			return fmt.Errorf("%q: want start, observe or end", lines.Text())
		}
		fmt.Fprintf(os.Stderr, "done: %s\n", lines.Text())
	}
	return lines.Err()
}

// start starts n executions, and returns when all of them are running.
func start(n int, end <-chan struct{}, opts []timeout.Option) {
	var started sync.WaitGroup
	started.Add(n)
	for i := range n {
		go func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				heartbeat.BeatWith(ctx, fmt.Sprintf("<i>step</i> %d of %d", i+1, n))
				started.Done()
				return waitForIt(ctx, end)
			}, opts...)
		}()
	}
	started.Wait()
}

// waitForIt waits for end. The test looks for its name in the stack.
//
//go:noinline
func waitForIt(ctx context.Context, end <-chan struct{}) error {
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

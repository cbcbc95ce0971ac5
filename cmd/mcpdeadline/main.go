// Mcpdeadline is an MCP server in front of another one, in whatever language that is written: it
// passes everything on, and no call of a tool hangs, whatever becomes of the server.
//
//	mcpdeadline -host zed -- npx -y @modelcontextprotocol/server-everything
//	mcpdeadline -idle 1m -tool build:total=1h -url http://127.0.0.1:8137/mcp
//
// README.md says what it does, and has a configuration for each host.
//
// frame.go has messages and lines, pass.go what passes through a session, call.go a call under
// its limits, signs.go what shows that it lives, handles.go what becomes of it after its soft
// limit, lists.go what is added to what the server says of itself, restart.go the server's end and
// its next start, and command.go and url.go the two kinds of server. web.go serves hosts over HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const exitUsage = 2

// maxHandles is how many calls may run on after their soft limit.
const maxHandles = 1000

func main() {
	procgroup.HelperMain() // see startCommand
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Without this the program would die on the spot where its stdout is closed. A host that has
	// gone is an error of the write to it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "mcpdeadline:", err)
		return exitUsage
	}
	said := newLossyWriter(stderr)
	defer said.flush(endLimit)
	stderr = said
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	policy, cuts := o.policy()
	for _, cut := range cuts {
		logger.Warn(cut)
	}
	// First what may be refused, and last what leaves something behind.
	var listener net.Listener
	if o.http != "" {
		if listener, err = listen("-http", o.http); err != nil {
			fmt.Fprintln(stderr, "mcpdeadline:", err)
			return exitUsage
		}
		defer listener.Close()
		if o.url == nil { // over stdio the host gets to know why
			if _, err := exec.LookPath(o.command[0]); err != nil {
				fmt.Fprintln(stderr, "mcpdeadline: the server cannot be started:", err)
				return timeout.ExitCode(err)
			}
		}
	}
	var page net.Listener
	if o.inspect != "" {
		if page, err = listen("-inspect", o.inspect); err != nil {
			fmt.Fprintln(stderr, "mcpdeadline:", err)
			return exitUsage
		}
		defer page.Close()
	}
	log, err := openLog(o.log, stderr, func(err error) { logger.Error("-log", "error", err) })
	if err != nil {
		fmt.Fprintln(stderr, "mcpdeadline: -log:", err)
		return exitUsage
	}
	if page != nil {
		defer servePage(page, stderr, logger)()
	}
	p := &proxy{
		options: o, calls: &toolcall.Settings{Policy: policy}, drain: new(toolcall.Drain),
		logger: logger, log: log, max: maxMessage,
	}
	if o.handles() {
		p.tasks, p.cont = task.New(task.WithMaxRunning(maxHandles)), &task.Continuation{After: o.softOf("")}
	}
	if o.url != nil {
		p.dial = dialURL(o.url, o.header, maxMessage)
	} else {
		p.dial = startCommand(o.command, maxMessage, stderr)
	}
	if listener != nil {
		err = serveHTTP(ctx, p, listener, stderr)
	} else {
		err = serveStdio(ctx, p, stdin, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mcpdeadline:", err)
		return timeout.ExitCode(err)
	}
	return 0
}

// How long a host may take to send its first request to a server that cannot be started, so that
// it gets to know why, and what is still to be written at the end may take.
const (
	refuseLimit = 2 * time.Second
	endLimit    = time.Second
)

// serveStdio serves one host until it closes stdin or stdout, or ctx is done.
func serveStdio(ctx context.Context, p *proxy, stdin io.Reader, stdout io.Writer) error {
	gone, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	out := &lineWriter{w: stdout}
	s := newSession(p, "stdio", func(m *message) {
		if out.write(m) != nil {
			hangUp()
		}
	})
	go func() {
		defer hangUp()
		_, _ = io.Copy(&splitter{
			max:  p.max,
			line: func(line []byte) { s.fromHost(context.Background(), readMessage(line)) },
			long: func(head, tail []byte, length int) {
				text := fmt.Sprintf("a message of %d bytes, and the most that mcpdeadline passes on is %d", length, p.max)
				p.logger.Warn(text)
				if id := idOf(head, tail); id != nil {
					s.deliver(failure(id, text))
				}
			},
		}, stdin)
	}()
	// A signal: the answers first.
	defer context.AfterFunc(ctx, func() {
		defer hangUp()
		p.shutdown(toolcall.ShutdownLimit)
	})()
	err := s.serve(gone)
	if err != nil {
		select {
		case <-s.refused:
		case <-gone.Done():
		case <-time.After(refuseLimit):
		}
	}
	p.shutdown(endLimit)
	return err
}

// shutdown has all calls answered.
func (p *proxy) shutdown(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.drain.Shutdown(ctx); err != nil {
		p.logger.Warn("shutdown", "error", err)
	}
}

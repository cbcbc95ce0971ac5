// Mcpdeadline is a proxy between an MCP host and a server in any language. It forwards all messages, and answers each
// tool call within its limits, even if the server hangs or ends.
//
//	mcpdeadline -- npx -y @modelcontextprotocol/server-everything
//	mcpdeadline -idle 1m -tool build:total=1h -url http://127.0.0.1:8137/mcp
//
// README.md describes it and has a configuration for each host. In the repository,
// docs/internals.md says which file answers which question.
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
	"os/signal"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calllog"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/front"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/remote"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/waittool"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const exitUsage = 2

// maxHandles is the largest number of calls that run at the same time after their answer with a handle.
const maxHandles = 1000

func main() {
	procgroup.HelperMain() // see server.StartProcess
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, unwatch := withLauncher(ctx)
	// Without this, a write to a closed stdout would kill the program with SIGPIPE. With it, the write returns an
	// error.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := machine.run(ctx, os.Args[1:], stdio.New(os.Stdin), stdio.New(os.Stdout), stdio.New(os.Stderr))
	unwatch()
	stop()
	os.Exit(code)
}

// run runs the program with the given arguments and streams until ctx is done or the host has ended. It returns the
// exit code.
func (sys system) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := within(ctx, "-config", func() (*options, error) { return parse(args, stdout) })
	if errors.Is(err, flag.ErrHelp) || errors.Is(err, errVersion) {
		return 0
	} else if err != nil {
		fmt.Fprintf(stderr, "mcpdeadline: %v\nTry 'mcpdeadline --help' for more information.\n", err)
		return exitUsage
	}
	said := lossyWriter{jsonrpc.NewOutbox(stderr, func() {})}
	defer said.Flush(host.ReadLimit, host.ReadLimit)
	stderr = said
	fails := func(code int, why ...any) int {
		fmt.Fprintln(stderr, append([]any{"mcpdeadline:"}, why...)...)
		return code
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	profile, cuts, err := o.profile()
	if err != nil {
		return fails(exitUsage, err)
	}
	if at, err := timeout.Inherited(); err != nil {
		logger.Warn("the deadline of the environment is ignored", "error", err)
	} else if !at.IsZero() {
		logger.Info("the environment has a deadline", "TOOL_DEADLINE", at, "left", time.Until(at).Round(time.Millisecond))
	}
	for _, cut := range cuts {
		logger.Warn(cut)
	}
	// The steps below that may fail come before steps with lasting effects, such as the creation of the log file.
	var listener net.Listener
	if o.http != "" {
		if listener, err = sys.listen("-http", o.http); err != nil {
			return fails(exitUsage, err)
		}
		defer listener.Close()
		if o.url == nil { // over stdio, an answer to the host reports this error later
			if _, err := sys.lookPath(o.command[0]); err != nil {
				return fails(timeout.ExitCode(err), "cannot start the server:", err)
			}
		}
	}
	var page net.Listener
	if o.inspect != "" {
		if page, err = sys.listen("-inspect", o.inspect); err != nil {
			return fails(exitUsage, err)
		}
		defer page.Close()
	}
	log, err := within(ctx, "-log", func() (*calllog.Log, error) {
		return calllog.Open(o.log, stderr, func(err error) { logger.Error("-log", "error", err) })
	})
	if err != nil {
		return fails(exitUsage, err)
	}
	defer log.Flush(host.ReadLimit)
	if page != nil {
		defer servePage(page, stderr, logger)()
	}
	p := o.proxy(profile, args, sys.most)
	p.Logger, p.Stderr, p.Log = logger, stderr, log
	if o.url != nil {
		p.Dials = remote.Dial(sys.transport(), o.url, o.header, p.Max)
	} else {
		p.Dials = func() server.Dialer { return server.Command(sys.start, o.command, p.Max, stderr, o.alive.Notify) }
	}
	if listener != nil {
		err = front.Serve(ctx, p, listener)
	} else {
		err = serveStdio(ctx, p, o.hostPID, sys.hungUp(stdin), stdin, stdout)
	}
	if err != nil {
		return fails(timeout.ExitCode(err), err)
	}
	return 0
}

// serveStdio serves one host until the host ends or closes stdin or stdout, the server cannot be started, or ctx is
// done. gone, which may be nil, reports whether the host has closed stdin; see [host.NewStall].
func serveStdio(ctx context.Context, p *calls.Proxy, hostPID int, gone func() bool, stdin io.Reader, stdout io.Writer) error {
	watched, unwatch := host.Watch(hostPID, p.Logger)
	defer unwatch()
	ended, hangUp := context.WithCancel(watched)
	defer hangUp()
	out := jsonrpc.NewOutbox(stdout, hangUp)
	s := calls.NewSession(p, "stdio", out.Put)
	s.Room = func() { out.Await(jsonrpc.QueueOf(p.Max)) }
	defer context.AfterFunc(ended, out.Ease)()
	stalled := host.NewStall(gone, hangUp)
	defer stalled.Read()
	go func() {
		defer hangUp()
		_, _ = io.Copy(&jsonrpc.Splitter{
			Max: p.Max,
			Line: func(line []byte) {
				stalled.Wait()
				defer stalled.Read()
				out.Await(2 * jsonrpc.QueueOf(p.Max)) // bounds the proxy's own answers, too
				s.FromHost(jsonrpc.Parse(line))
			},
			Long: func(head, tail []byte, length int) {
				text := fmt.Sprintf("message of %d bytes exceeds the limit of %d", length, p.Max)
				p.Logger.Warn(text)
				if id := jsonrpc.IDOf(head, tail); id != nil {
					s.Deliver(jsonrpc.Failure(id, text))
				}
			},
		}, stdin)
	}()
	// On a signal, Shutdown first answers the calls, and then the connection to the host is closed.
	defer context.AfterFunc(ctx, func() {
		defer hangUp()
		p.Shutdown(toolcall.ShutdownLimit)
	})()
	err := s.Serve(ended)
	if err != nil {
		select {
		case <-s.Refused:
		case <-ended.Done():
		case <-time.After(host.RefuseLimit):
		}
	}
	p.Shutdown(host.ReadLimit)
	if left := out.Flush(host.ReadLimit, toolcall.ShutdownLimit); left > 0 {
		p.Logger.Warn("the host has not read everything", "bytes", left)
	}
	return err
}

// proxy returns a Proxy with the settings. The caller sets its Logger, Stderr, Log and Dials.
func (o *options) proxy(profile calls.Profile, args []string, most int) *calls.Proxy {
	p := &calls.Proxy{
		Alive: o.alive, Ping: o.ping, Declare: o.declare, Remote: o.url != nil,
		Profile: profile, Tasks: &task.Tasks{MaxRunning: maxHandles}, Drain: new(toolcall.Drain), Max: most, Mark: waittool.CommandMark(args),
	}
	p.Known = func(name, version string) *calls.Profile {
		fits, known := o.known(name)
		if !known {
			return nil
		}
		profile, _, err := fits.profile() // run has logged the changed limits
		if err != nil {
			return nil // not reached, unless the environment has changed: run has called profile too
		}
		soft, _ := fits.softOf("")
		p.Logger.Info("host recognised", "host", fits.host.Name, "client", name, "version", version, "limit", fits.host.Limit, "continued after", soft)
		return &profile
	}
	return p
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/term"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A display shows the progress of a call. Its methods are called one at a time.
type display interface {
	update(*mcp.ProgressNotificationParams)
	clear() // clears the terminal until the next update
}

// call makes the call, and shows its progress and its outcome. It returns the exit code.
func call(ctx context.Context, o options, stdin, stdout, stderr *os.File) int {
	ctx, end := context.WithCancel(ctx)
	defer end()
	d := newSerial(stderr)
	shown, said := stdio.New(stdout), stdio.New(stderr) // the server shares stderr, and may make it non-blocking
	clientOptions := &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { d.update(req.Params) },
	}
	if isTerminal(stdin) && isTerminal(stderr) {
		clientOptions.ElicitationHandler = (&person{in: stdio.New(stdin), out: said, display: d, call: ctx}).answer
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "tooldeadline-example-client", Version: "0"}, clientOptions)

	// These lines apply the limits of the flags to the call, and the default limits to other requests.
	perMethod := request.DefaultLimits()
	perMethod["tools/call"] = o.limits
	mcpsdk.Limit(c, &request.Options{PerMethod: perMethod})

	session, err := mcpsdk.Connect(ctx, c, func() (mcp.Transport, error) { return transport(o, stderr), nil },
		&mcpsdk.ConnectOptions{
			Session: &mcp.ClientSessionOptions{ProtocolVersion: o.protocol},
			Backoff: request.Backoff{Retries: -1},
			Failed: func(err error) (again bool) {
				if o.standing {
					fmt.Fprintf(said, "mcpclient: %v; trying again in 30 s\n", err)
				}
				return o.standing
			},
		})
	if err != nil {
		return fail(said, err)
	}
	params := &mcp.CallToolParams{Name: o.tool, Arguments: o.arguments}
	params.SetProgressToken("call") // for the display; the limits do not need it
	begun := time.Now()
	res, err := session.CallTool(ctx, params)
	took := time.Since(begun)
	end()
	d.end()
	hangUp(session, err != nil)
	if err != nil {
		return fail(said, err)
	}
	return show(res, took, shown, said)
}

// hangUp ends the session and the server that was started for it. If the server does not end by itself, the SDK kills
// it, within 15 s.
//
// If the call was cancelled, hangUp first waits for the answer to a ping: the SDK sends the cancellation on another
// goroutine, which might otherwise find the session closed.
func hangUp(session *mcp.ClientSession, cancelled bool) {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		if cancelled {
			_ = session.Ping(request.WithLimits(ctx, request.Limits{Timeout: 2 * time.Second}), nil)
		}
		return session.Close()
	}, timeout.Config{Total: 20 * time.Second})
}

func transport(o options, stderr io.Writer) mcp.Transport {
	if o.url != "" {
		return &mcp.StreamableClientTransport{Endpoint: o.url}
	}
	// The server has its own process group, so that Ctrl-C reaches only the client, which then cancels the call.
	cmd := exec.CommandContext(context.Background(), o.command[0], o.command[1:]...)
	procgroup.Attach(cmd)
	cmd.Stderr = stderr
	return &mcp.CommandTransport{Command: cmd}
}

func fail(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "mcpclient:", err)
	return timeout.ExitCode(err)
}

// show prints the result of the tool and the outcome of the call.
func show(res *mcp.CallToolResult, took time.Duration, stdout, stderr io.Writer) int {
	var b bytes.Buffer
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Fprintln(&b, t.Text)
		} else {
			fmt.Fprintf(&b, "[%T]\n", c)
		}
	}
	if _, err := b.WriteTo(stdout); err != nil {
		return fail(stderr, err)
	}
	took = took.Round(time.Millisecond)
	switch o, stopped := outcomeOf(res); {
	case stopped:
		fmt.Fprintf(stderr, "mcpclient: the server stopped the tool after %v: %s, exit code %d, limits: total %s, idle %s, longest silence %s\n",
			took, o.Kind, o.ExitCode, limit(o.Total), limit(o.Idle), millis(o.LongestGap))
		return o.ExitCode
	case res.IsError:
		fmt.Fprintf(stderr, "mcpclient: the tool failed after %v\n", took)
		return 1
	}
	fmt.Fprintf(stderr, "mcpclient: the tool succeeded after %v\n", took)
	return 0
}

// outcomeOf returns the outcome in the _meta of a result. ok is false if there is none, or its exit code is no failure.
func outcomeOf(res *mcp.CallToolResult) (o toolcall.Outcome, ok bool) {
	v, ok := res.Meta[toolcall.OutcomeKey]
	if !ok {
		return o, false
	}
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &o) != nil {
		return o, false
	}
	return o, o.ExitCode > 0 && o.ExitCode < 256
}

func limit(ms float64) string {
	if ms <= 0 {
		return "none"
	}
	return millis(ms).String()
}

func millis(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

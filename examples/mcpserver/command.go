package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	maxOutput  = 64 << 10 // bytes at the end of the output that are in a result
	maxMessage = 200      // bytes of a line in a progress message
)

type runInput struct {
	Command   string   `json:"command" jsonschema:"the program to run, a path or a name; it is not passed through a shell"`
	Args      []string `json:"args,omitempty" jsonschema:"its arguments"`
	Dir       string   `json:"dir,omitempty" jsonschema:"the directory to run it in; by default that of the server"`
	TimeoutMs int64    `json:"timeoutMs,omitempty" jsonschema:"stop it after this many milliseconds, up to an hour"`
}

// runSchema is the schema that the SDK derives from runInput, except that args must be an array. A Go
// slice may be nil, so the SDK permits null too, and then the models of some clients send a string.
func runSchema() *jsonschema.Schema {
	s, err := jsonschema.For[runInput](nil)
	if err != nil {
		panic(err)
	}
	args := s.Properties["args"]
	args.Type, args.Types = "array", nil
	return s
}

// runCommand runs a command. All output renews the idle limit, and whole lines become progress messages. The end of
// ctx, by a limit or an abort, stops the command. When runCommand returns, the command and all processes that it has
// started have ended.
func runCommand(ctx context.Context, _ *mcp.CallToolRequest, in runInput) (*mcp.CallToolResult, any, error) {
	cmd := exec.Command(in.Command, in.Args...)
	if cmd.Dir = in.Dir; in.Dir != "" {
		if _, err := os.Stat(in.Dir); err != nil { // otherwise the error would blame the command
			return nil, nil, fmt.Errorf("dir: %w", err)
		}
	}
	lines := 0
	r, err := procgroup.Run(ctx, cmd,
		procgroup.WithOptions(timeout.WithName(filepath.Base(in.Command))),
		procgroup.Capture{Tail: maxOutput, OnePipe: true, Each: procgroup.Lines(func(line string, _ bool) {
			lines++
			progress.Report(ctx, progress.Update{Progress: float64(lines), Message: cut(line, maxMessage)})
		})}, // the result has both streams in order, as on a terminal
		containment())
	if r == nil { // it did not start
		return nil, nil, fmt.Errorf("%w (exit code: %d)", err, timeout.ExitCode(err))
	}
	if r.Reason != procgroup.Exited {
		res := new(mcp.CallToolResult)
		if out := output(r); strings.TrimSpace(out) != "" {
			res = text("Partial output:\n" + out)
		}
		mcpsdk.SetResult(res, err, "") // the reason stands before the output
		return res, nil, nil
	}
	res := text(fmt.Sprintf("exit code: %d\n\n%s", r.ExitCode, output(r)))
	if err != nil {
		res.SetError(err)
	}
	return res, nil, nil
}

// containment returns the option with which a command ends with the server. On Linux, the command ends even if the
// server is killed with SIGKILL, as hosts do if the server is slow to end.
func containment() procgroup.Containment {
	if runtime.GOOS == "linux" {
		return procgroup.Helper
	}
	return "" // the best available
}

// output returns the part of the command's output that was kept.
func output(r *procgroup.Result) string {
	var b strings.Builder
	if r.Combined.Dropped > 0 {
		fmt.Fprintf(&b, "[%d bytes left out]\n", r.Combined.Dropped)
	}
	b.WriteString(r.Combined.String())
	if r.Survivors != nil {
		fmt.Fprintf(&b, "\n[still running: %v]", r.Survivors)
	}
	return b.String()
}

// cut returns the first n bytes of s, or less so as not to split a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

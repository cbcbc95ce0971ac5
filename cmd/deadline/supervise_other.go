//go:build !unix

package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func supervise(o options, r *reporter) ending {
	if o.foreground {
		r.say("--foreground is not supported on this system")
		return ending{code: exitFailed}
	}
	if !o.alive.output {
		r.say("option '--alive': on this system output is always a sign of life, so include it")
		return ending{code: exitFailed}
	}
	if err := o.alive.activity().Check(); err != nil {
		r.say("option '--alive': %v", err)
		return ending{code: exitFailed}
	}
	if o.alive.notices {
		r.say("--notify is not supported on this system")
		return ending{code: exitFailed}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, unwatch := withLauncher(ctx)
	defer unwatch()
	cmd := exec.Command(o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	grace := time.Duration(math.MaxInt64 / 4) // without -k, the command is not killed
	if o.killAfter > 0 {
		grace = min(o.killAfter, grace)
	}
	result, err := procgroup.Run(ctx, cmd,
		procgroup.Limits{Total: o.total, Idle: o.idle},
		o.alive.activity(),
		procgroup.Stop{Signal: o.signal, Grace: grace, Orphans: true},
		procgroup.Capture{Tail: -1})
	if result == nil {
		r.say("failed to run command %s: %v", quote(o.command[0]), err)
		if code := timeout.ExitCode(err); code == exitNotFound {
			return ending{code: code}
		}
		return ending{code: exitCannotExecute}
	}
	if result.Message != "" && o.verbose {
		r.say("stopped command %s: %s", quote(o.command[0]), result.Message)
		for line := range strings.Lines(result.Tree.String()) {
			r.say("  %s", strings.TrimRight(line, " \n"))
		}
	}
	if result.Reason != procgroup.Exited && result.State != nil && (o.preserveStatus || result.Escalated) {
		return ending{code: result.State.ExitCode()}
	}
	return ending{code: result.ExitCode}
}

// Package command connects package procgroup to package timeout. The execution of a command does not end with the
// function that waits for it: the processes must be killed, the output collected and the exit code read before the
// outcome is known. The outcome that Conclude returns then is reported to the caller and to all observers.
package command

import (
	"context"
	"log/slog"
	"time"
)

// A Command describes a command to the execution that runs it.
type Command struct {
	Name string // the name of the tool if the options set none

	Total, Idle, Grace, Reserve time.Duration

	// Describe returns a text about what the processes are doing, or nil. The execution shows the text in place of the
	// stack of its function, which only waits for the processes. If stopped is true, a limit has fired but nothing has
	// been cancelled yet, so Describe must be quick. It must be safe for concurrent use.
	Describe func(stopped bool) []byte

	// Conclude ends the rest of the command. It is called once, after the function has returned,
	// with the outcome of the execution, which it may complete in place. If processes are left over,
	// it returns them as attributes for a warning and as text. final is the outcome of the call.
	Conclude func(outcome error) (left []slog.Attr, leftovers string, final error)
}

// A Stop is the error of a command that was stopped for what it did, and not by a limit or by its caller. Observers
// report it as a separate outcome.
type Stop interface {
	error
	CommandStop() (reason string) // the reason in words, such as "too much output"
}

type starterKey struct{}

// WithStarter returns a copy of ctx for procgroup.Start. While Start waits for a file system, the end of starter has the
// effect of the end of ctx. Afterwards it has none.
func WithStarter(ctx, starter context.Context) context.Context {
	return context.WithValue(ctx, starterKey{}, starter)
}

// StarterOf returns the starter of ctx, or nil if there is none.
func StarterOf(ctx context.Context) context.Context {
	starter, _ := ctx.Value(starterKey{}).(context.Context)
	return starter
}

// Check returns a *timeout.ConfigError if one of opts, a []timeout.Option, cannot be used for commands. Package timeout
// sets Check.
var Check func(opts any) error

// Run is timeout.Run for wait, the function that waits for c. opts is a []timeout.Option that Check accepts. Run does
// not call Conclude if the context has ended before the start. The execution never abandons wait, which may be waiting
// for a slow start: a command that starts later would have nothing to end it.
//
// Package timeout sets Run. Two designs were rejected: an exported option, which no other package
// could use, and a context value, which nested executions would inherit.
var Run func(ctx context.Context, c *Command, wait func(context.Context) error, opts any) error

package callsites_test

import (
	"context"
	"errors"
	"log/slog"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// handler is a slog.Handler whose writing is the caller's code, for records whose message the test asks for.
type handler struct {
	slog.Handler
	hit func(ctx context.Context, message string)
}

func (h handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h handler) WithGroup(string) slog.Handler            { return h }
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.hit(ctx, r.Message)
	return nil
}

func logger(s *Site) *slog.Logger {
	return slog.New(handler{hit: func(ctx context.Context, _ string) { s.Hit(ctx) }})
}

// own returns what a hook or a log handler may call of its own execution.
func own(ctx context.Context) func() {
	return func() {
		e := timeout.FromContext(ctx)
		e.Snapshot()
		e.Stack()
		e.BeginClosing()
		e.Abort(errors.New("by a hook"))
	}
}

// told bounds a run of which hooks or a logger are told: they get a grace beside the function's.
const told = within + grace

// The ways in which an execution ends, by the function that has to be run for them.
func obeys(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// deaf returns after its execution has been abandoned.
func deaf(context.Context) error { time.Sleep(time.Minute); return nil }

type hook = func(context.Context, timeout.Snapshot)

// hooks runs fn with one hook, which is set by set, given with the execution or for all of them.
func hooks(fn func(context.Context) error, set func(*timeout.Hooks, hook), opts ...timeout.Option) func(way string) Row {
	return func(way string) Row {
		return Row{Within: told, Do: func(s *Site) {
			var h timeout.Hooks
			set(&h, func(ctx context.Context, _ timeout.Snapshot) { s.Hit(ctx, own(ctx)) })
			if way == "watch" {
				defer timeout.Watch(h)()
				_ = limited(fn, opts...)
			} else {
				_ = limited(fn, append([]timeout.Option{timeout.WithHooks(h)}, opts...)...)
			}
		}}
	}
}

func init() {
	quick := func(context.Context) error { return nil }
	closes := timeout.Config{Total: idle, Reserve: idle / 2, Grace: grace}
	for name, row := range map[string]func(string) Row{
		"Started":   hooks(quick, func(h *timeout.Hooks, f hook) { h.Started = f }),
		"NearIdle":  hooks(obeys, func(h *timeout.Hooks, f hook) { h.NearIdle = f }),
		"Closing":   hooks(obeys, func(h *timeout.Hooks, f hook) { h.Closing = f }, closes),
		"Exceeded":  hooks(obeys, func(h *timeout.Hooks, f hook) { h.Exceeded = f }),
		"Finished":  hooks(quick, func(h *timeout.Hooks, f hook) { h.Finished = f }),
		"Abandoned": hooks(deaf, func(h *timeout.Hooks, f hook) { h.Abandoned = f }),
		"Context": hooks(quick, func(h *timeout.Hooks, f hook) {
			h.Context = func(ctx context.Context, s timeout.Snapshot) context.Context { f(ctx, s); return ctx }
		}),
		"Exceeded/observe": hooks(func(context.Context) error { time.Sleep(idle); return nil },
			func(h *timeout.Hooks, f hook) { h.Exceeded = f }, timeout.Config{Idle: idle / 2, Grace: grace}, timeout.WithObserveOnly()),
		"Finished/stopped":   hooks(obeys, func(h *timeout.Hooks, f hook) { h.Finished = f }),
		"Finished/abandoned": hooks(deaf, func(h *timeout.Hooks, f hook) { h.Finished = f }),
	} {
		add(Table{"timeout.Hooks." + name: row(""), "timeout.Hooks." + name + "/watch": row("watch")})
	}
	add(Table{
		"timeout.Hooks.Returned": {Within: told + time.Minute, Do: func(s *Site) {
			returned := make(chan bool)
			_ = limited(deaf, timeout.WithHooks(timeout.Hooks{Returned: func(ctx context.Context, _ timeout.Snapshot) {
				close(returned)
				s.Hit(ctx, own(ctx))
			}}))
			<-returned
		}},
		"timeout.Hooks.Stalled": {Never: "of a stalled process, which no bubble has; it goes the way of NearIdle"},
	})
	for way, fn := range map[string]func(context.Context) error{"stopped": obeys, "abandoned": deaf, "panicked": func(ctx context.Context) error {
		<-ctx.Done()
		panic("late")
	}} {
		add(Table{"timeout.WithLogger(l)/" + way: {Within: told, Do: func(s *Site) { _ = limited(fn, timeout.WithLogger(logger(s))) }}})
	}
	add(Table{
		"timeout.WithLogger(l)/config": {Within: told, Do: func(s *Site) {
			_ = limited(quick, timeout.Config{Total: -1, Grace: grace}, timeout.WithLogger(logger(s)))
		}},
		"timeout.Run(fn)": {Within: within, Do: func(s *Site) { _ = limited(func(ctx context.Context) error { s.Hit(ctx, own(ctx)); return nil }) }},
		"timeout.RunWithExecutionTimeout(fn)": {Within: within, Do: func(s *Site) {
			_ = timeout.RunWithExecutionTimeout(context.Background(), func(ctx context.Context) error { s.Hit(ctx, own(ctx)); return nil },
				timeout.Config{Idle: idle, Grace: grace}, timeout.WithRecover())
		}},
		"timeout.Do(fn)": {Within: within, Do: func(s *Site) {
			_, _ = timeout.Do(context.Background(), func(ctx context.Context) (int, error) { s.Hit(ctx, own(ctx)); return 1, nil },
				timeout.Config{Idle: idle, Grace: grace}, timeout.WithRecover())
		}},
	})
}

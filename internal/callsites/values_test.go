package callsites_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// patience is how long a method of a value is waited for when its text is wanted, or an error is asked.
const patience = time.Second

// asking is an error whose methods are the caller's code.
type asking struct{ s *Site }

func (a asking) Error() string { a.s.Hit(nil); return "an error of the caller's" }
func (a asking) Is(error) bool { a.s.Hit(nil); return false }
func (a asking) Unwrap() error { a.s.Hit(nil); return nil }
func (a asking) As(any) bool   { a.s.Hit(nil); return false }

// SPEC 3.25: a detail, an error and a panic value become text beside the call, within a bound.
func init() {
	add(Table{
		"heartbeat.BeatWith(detail)": {Within: within + patience, Do: func(s *Site) {
			err := limited(func(ctx context.Context) error {
				heartbeat.BeatWith(ctx, code{s, context.Background()})
				<-ctx.Done()
				return nil
			})
			_ = fmt.Sprintf("%+v", err)
		}},
		"heartbeat.BeatWith(detail)/log": {Within: told + patience, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				heartbeat.BeatWith(ctx, code{s, context.Background()})
				<-ctx.Done()
				return nil
			}, timeout.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		}},
		"timeout.Execution.Abort(cause)": {Within: told + patience, Do: func(s *Site) {
			err := limited(func(ctx context.Context) error {
				timeout.FromContext(ctx).Abort(asking{s})
				<-ctx.Done()
				return ctx.Err()
			}, timeout.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
			_ = fmt.Sprintf("%+v", err)
		}},
		"timeout.ExitCode(err)": {Within: patience, Do: func(s *Site) { timeout.ExitCode(asking{s}) }},
		"timeout.ExitCode(err)/stopped": {Within: within + 2*patience, Do: func(s *Site) {
			err := limited(func(ctx context.Context) error { <-ctx.Done(); return asking{s} })
			_ = timeout.ExitCode(errors.Join(asking{s}, err))
		}},
		"progress.UpdateOf(detail)": {Within: patience, Do: func(s *Site) { progress.UpdateOf(code{s, context.Background()}) }},
		"progress.Wait.Words": {Within: 2*idle + 2*patience, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				stop := progress.Start(ctx, "token", time.Millisecond, func(context.Context, progress.Notification) error { return nil })
				defer stop()
				_, err := progress.Await(ctx, "an approval", progress.Wait{Limit: idle / 2, ProgressLimit: idle / 2, KeepAlive: idle / 10, Words: func(string, time.Duration, time.Duration) string { s.Hit(ctx); return "still" }}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
				return err
			})
		}},
		"toolcall.Drain.Handler(h)": {Never: "net/http calls it, under the limits of its server"},
	})
	for name, text := range map[string]func(error){
		"Text(err)":      func(err error) { _ = toolcall.Text(err, "") },
		"Message(err)":   func(err error) { _ = toolcall.Message(err) },
		"OutcomeOf(err)": func(err error) { _, _ = toolcall.OutcomeOf(err) },
		"CauseOf(err)":   func(err error) { _ = toolcall.CauseOf(err) },
	} {
		add(Table{"toolcall." + name: {Within: 2 * patience, Do: func(s *Site) { text(asking{s}) }}})
	}
}

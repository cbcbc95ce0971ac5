package callsites_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A hostileError is an error whose methods are the caller's code.
type hostileError struct{ *Site }

func (e hostileError) Error() string { e.Hit(nil); return "hostile" }
func (e hostileError) Is(error) bool { e.Hit(nil); return false }
func (e hostileError) As(any) bool   { e.Hit(nil); return false }

// A hostileToken is one whose JSON is the caller's code.
type hostileToken struct{ *Site }

func (t hostileToken) MarshalJSON() ([]byte, error) { t.Hit(nil); return []byte("1"), nil }

// A blocking token is one whose JSON never comes.
type blockingToken struct{}

func (blockingToken) MarshalJSON() ([]byte, error) { select {} }

// SPEC 3.24: a token is a string or a number, and no code of a program's runs to find out.
func TestTokensRunNoCode(t *testing.T) {
	for _, token := range []any{blockingToken{}, []any{blockingToken{}}, map[string]any{"a": blockingToken{}}, &blockingToken{}, [1]blockingToken{}} {
		limiter := request.New(&request.Options{Limits: &request.Limits{Timeout: time.Second, ResetOnProgress: true}})
		_, err := request.Do(t.Context(), limiter, request.Call{Token: token}, func(_ context.Context, token string) (int, error) {
			if token != "" {
				t.Errorf("%T: the request is sent with %q", token, token)
			}
			return 0, nil
		})
		if err != nil {
			t.Error(err)
		}
		err = limited(func(ctx context.Context) error {
			defer progress.Start(ctx, token, 0, func(context.Context, progress.Notification) error { t.Errorf("%T is sent", token); return nil })()
			progress.Report(ctx, progress.Update{Progress: 1})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func init() {
	add(Table{

		"adapter.Repeat(content)": {Waits: "for content to become JSON", Panics: true, Do: func(s *Site) {
			_, _ = repeat(hostileToken{s}, func() (int, error) { return 0, nil })
		}},
		"request.Permanent(err)":          {Waits: "waits for the methods of err", Panics: true, Do: func(s *Site) { request.Permanent(hostileError{s}) }},
		"request.TimedOut(err)":           {Waits: "waits for the methods of err", Panics: true, Do: func(s *Site) { request.TimedOut(hostileError{s}) }},
		"policy.ReadBudget(meta)":         {Never: "only types that JSON decodes to are looked at"},
		"adapter.Server.Call(meta)":       {Never: "only types that JSON decodes to are looked at"},
		"adapter.Repeat(meta)":            {Never: "only types that JSON decodes to are looked at"},
		"request.Declarations.Tool(meta)": {Never: "only types that JSON decodes to are looked at"},

		"request.Do(send)": {Within: idle + 250*time.Millisecond, Panics: true, Do: func(s *Site) {
			limiter := request.New(&request.Options{Limits: &request.Limits{Timeout: idle}})
			_, _ = request.Do(context.Background(), limiter, request.Call{Method: "m"}, func(ctx context.Context, _ string) (int, error) { s.Hit(ctx); return 0, nil })
		}},
		"request.Options.Logger": {Within: told + 250*time.Millisecond, Do: func(s *Site) {
			limiter := request.New(&request.Options{Logger: logger(s), Limits: &request.Limits{Timeout: idle}})
			_, _ = request.Do(context.Background(), limiter, request.Call{Method: "m"}, func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return 0, nil })
		}},
		"request.Retry(do)": {Waits: "waits for do", Panics: true, Do: func(s *Site) {
			_, _ = request.Retry(context.Background(), request.Backoff{}, func(error) bool { return false }, func() (int, error) { s.Hit(nil); return 0, nil })
		}},
		"request.Retry(again)": {Within: 2 * time.Second, Panics: true, Do: func(s *Site) {
			ctx, cancel := context.WithTimeout(context.Background(), idle)
			defer cancel()
			_, _ = request.Retry(ctx, request.Backoff{}, func(error) bool { s.Hit(nil); return false }, func() (int, error) { return 0, errors.New("refused") })
		}},

		"progress.Await(ask)": {Within: 2 * time.Second, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, idle)
				defer cancel()
				_, err := progress.Await(ctx, "it", progress.Wait{}, func(ctx context.Context) (int, error) { s.Hit(ctx); return 0, nil })
				return err
			})
		}},
		"progress.AwaitReply(ask)": {Within: 2 * time.Second, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, idle)
				defer cancel()
				_, err := progress.AwaitReply(ctx, "it", progress.Wait{}, func(ctx context.Context) (int, error) { s.Hit(ctx); return 0, nil })
				return err
			})
		}},
		"progress.Notifier": {Within: within + time.Second, Do: func(s *Site) {
			var stop func()
			_ = limited(func(ctx context.Context) error {
				stop = progress.Start(ctx, 1, time.Millisecond, func(ctx context.Context, _ progress.Notification) error { s.Hit(ctx); return nil })
				progress.Report(ctx, progress.Update{Progress: 1})
				<-ctx.Done()
				return nil
			}, timeout.Config{Total: idle, Grace: grace})
			stop()
		}},
		"progress.Start(token)":               {Never: "one with methods of its own is refused"},
		"progress.Notification.ProgressToken": {Never: "one with methods of its own is refused"},
	})
}

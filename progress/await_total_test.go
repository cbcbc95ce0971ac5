package progress_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 7.9: a wait ends before whatever would stop its tool, so that the tool answers with the words for the
// wait. It leaves a sixth of what is left for the answer, at most 2 s, and the whole of a reserve.
func TestAwaitEndsBeforeTheTotal(t *testing.T) {

	in := func(c timeout.Config, f func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error { return timeout.Run(ctx, f, c) }
	}
	for _, tc := range []struct {
		name string
		run  func(wait func(context.Context) error) func(context.Context) error
		want time.Duration
	}{
		{"no total", func(wait func(context.Context) error) func(context.Context) error { return wait }, 10 * time.Minute},
		{"a far total", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: time.Hour}, wait)
		}, 10 * time.Minute},
		{"a total", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s}, wait)
		}, 48 * s},
		{"a total with nanoseconds", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50*s + 123456789}, wait)
		}, 48*s + 123*time.Millisecond},
		{"a short total", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 6 * s}, wait)
		}, 5 * s},
		{"a total that has begun", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s}, func(ctx context.Context) error { time.Sleep(20 * s); return wait(ctx) })
		}, 28 * s},
		{"an outer total", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s}, in(timeout.Config{Total: time.Hour}, in(timeout.Config{Idle: s}, wait)))
		}, 48 * s},
		{"an inner total", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: time.Hour}, in(timeout.Config{Total: 50 * s}, wait))
		}, 48 * s},
		{"the caller's deadline", func(wait func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 50*s)
				defer cancel()
				return in(timeout.Config{Total: time.Hour}, wait)(ctx)
			}
		}, 48 * s},
		{"a deadline of the tool's own", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: time.Hour}, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 50*s)
				defer cancel()
				return wait(ctx)
			})
		}, 48 * s},
		{"a deadline outside any execution", func(wait func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 50*s)
				defer cancel()
				return wait(ctx)
			}
		}, 48 * s},
		{"a reserve", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s, Reserve: 10 * s}, wait)
		}, 40 * s},
		{"a small reserve", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s, Reserve: s}, wait)
		}, 48 * s},
		{"an outer reserve", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s, Reserve: 10 * s}, in(timeout.Config{Total: 45 * s}, wait))
		}, 40 * s},
		{"a reserve that has begun", func(wait func(context.Context) error) func(context.Context) error {
			return in(timeout.Config{Total: 50 * s, Reserve: 30 * s}, func(ctx context.Context) error { time.Sleep(26 * s); return wait(ctx) })
		}, 22 * s},
	} {
		for kind, ask := range map[string]func(context.Context) (string, error){
			"hears": person(time.Hour),
			"deaf":  func(context.Context) (string, error) { time.Sleep(time.Hour); return "", nil },
		} {
			bubble(t, tc.name+"/"+kind, func(t *testing.T) {
				var took time.Duration
				err := tc.run(func(ctx context.Context) error {
					begun := time.Now()
					_, err := progress.Await(ctx, "rm -r build", progress.Wait{Limit: 10 * time.Minute, ProgressLimit: 10 * time.Minute}, ask)
					took = time.Since(begun)
					return err
				})(t.Context())
				if !errors.Is(err, progress.ErrNoAnswer) || err.Error() != progress.ErrNoAnswer.Error() || timeout.ExitCode(err) != timeout.ExitTimeout {
					t.Errorf("%v", err)
				}
				if most := tc.want + time.Second; kind == "hears" && took != tc.want || took < tc.want || took > most {
					t.Errorf("after %v, want %v", took, tc.want)
				}
				time.Sleep(2 * time.Hour)
			})
		}
	}
}

package callsites_test

import (
	"context"
	"io"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What an execution may take here, at most: its idle limit and its grace.
const (
	idle   = time.Second
	grace  = 200 * time.Millisecond
	within = idle + grace
)

// limited runs fn under these limits.
func limited(fn func(context.Context) error, opts ...timeout.Option) error {
	opts = append([]timeout.Option{timeout.Config{Idle: idle, Grace: grace}, timeout.WithRecover()}, opts...)
	return timeout.Run(context.Background(), fn, opts...)
}

// code is the caller's code wherever an interface is wanted.
type code struct {
	*Site
	ctx context.Context
}

func (c code) Read([]byte) (int, error)    { c.Hit(c.ctx); return 0, io.EOF }
func (c code) Write(p []byte) (int, error) { c.Hit(c.ctx); return len(p), nil }
func (c code) Close() error                { c.Hit(c.ctx); return nil }
func (c code) String() string              { c.Hit(c.ctx); return "text" }

func init() {
	add(Table{
		"heartbeat.Keep(fn)": {Within: within, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				return heartbeat.Keep(ctx, 0, func(ctx context.Context) error { s.Hit(ctx); return nil })
			}, timeout.Config{Total: idle, Grace: grace})
		}},
		"heartbeat.Reader(r)": {Within: within, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				_, err := io.ReadAll(heartbeat.Reader(ctx, code{s, ctx}))
				return err
			})
		}},
		"heartbeat.Writer(w)": {Within: within, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				_, err := heartbeat.Writer(ctx, code{s, ctx}).Write([]byte("x"))
				return err
			})
		}},
		"heartbeat.Relay(sink)": {Within: within, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				stop := heartbeat.Relay(ctx, time.Millisecond, func(ctx context.Context, _ any) { s.Hit(ctx) })
				defer stop()
				heartbeat.Beat(ctx)
				<-ctx.Done()
				return nil
			})
		}},
		"heartbeat.Relay(sink)/end": {Within: within + time.Millisecond, Do: func(s *Site) {
			_ = limited(func(ctx context.Context) error {
				stop := heartbeat.Relay(ctx, time.Hour, func(ctx context.Context, detail any) {
					if detail == "newest" {
						s.Hit(ctx)
					}
				})
				defer stop()
				heartbeat.Beat(ctx)
				time.Sleep(time.Millisecond)
				heartbeat.BeatWith(ctx, "newest")
				return nil
			})
		}},
	})
}

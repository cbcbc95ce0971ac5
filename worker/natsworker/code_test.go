package natsworker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Each method of a hostile value does what the test wants.
type hostile struct {
	at     string
	attack func()
}

func (h hostile) do(here string) {
	if here == h.at {
		h.attack()
	}
}

func (h hostile) Error() string                             { h.do("Error"); return "hostile" }
func (h hostile) Is(error) bool                             { h.do("Is"); return false }
func (h hostile) As(any) bool                               { h.do("As"); return false }
func (h hostile) Unwrap() error                             { h.do("Unwrap"); return nil }
func (h hostile) String() string                            { h.do("String"); return "detail" }
func (h hostile) Enabled(context.Context, slog.Level) bool  { h.do("Enabled"); return true }
func (h hostile) Handle(context.Context, slog.Record) error { h.do("Handle"); return nil }
func (h hostile) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h hostile) WithGroup(string) slog.Handler             { return h }

// SPEC 3.24: a function, its error, its detail and a logger keep no message from its outcome, no slot from the next
// message, and Run from ending, whatever they do.
func TestRunOutlastsCode(t *testing.T) {
	for _, at := range []string{"fn", "Error", "Is", "As", "Unwrap", "String", "Enabled", "Handle"} {
		for _, how := range []string{"block", "panic", "goexit"} {
			t.Run(at+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					attack := map[string]func(){
						"block":  func() { <-release },
						"panic":  func() { panic("hostile") },
						"goexit": runtime.Goexit,
					}[how]
					h := hostile{at, attack}
					bad, good := newFakeMsg(1), newFakeMsg(1)
					c := consumerWith(nil)
					c.messages <- bad
					c.messages <- good
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					begun, first := time.Now(), true
					err := natsworker.Run(ctx, c, 1, func(ctx context.Context, _ jetstream.Msg) error {
						if !first {
							return nil
						}
						first = false
						h.do("fn")
						if at == "String" {
							heartbeat.BeatWith(ctx, h)
							<-ctx.Done()
							return nil
						}
						return h
					}, natsworker.Options{Limits: &timeout.Config{Total: 400 * time.Millisecond, Grace: 400 * time.Millisecond}, Logger: slog.New(h)})
					// A function that blocks keeps its slot, as is documented.
					stuck := how == "block" && at != "String" && at != "Enabled" && at != "Handle"
					if took := time.Since(begun); took > time.Minute+10*time.Second || err != nil && !(stuck && errors.Is(err, natsworker.ErrStuck)) {
						t.Errorf("Run returned after %v with %v", took, err)
					}
					if len(bad.heard()) != 1 {
						t.Errorf("said of the message: %q", bad.heard())
					}
					if len(good.heard()) != 1 && !stuck {
						t.Errorf("said of the next: %q", good.heard())
					}
					close(release)
					time.Sleep(time.Hour)
				})
			})
		}
	}
}

// A big value has a text of 10 MiB.
type big struct{}

func (big) Error() string  { return strings.Repeat("x", 10<<20) }
func (big) String() string { return strings.Repeat("x", 10<<20) }

// SPEC 3.25: what is said of a message has a bound.
func TestTextsAreCut(t *testing.T) {
	for name, fn := range map[string]func(context.Context, jetstream.Msg) error{
		"error": func(context.Context, jetstream.Msg) error { return big{} },
		"panic": func(context.Context, jetstream.Msg) error { panic(big{}) },
		"detail": func(ctx context.Context, _ jetstream.Msg) error {
			heartbeat.BeatWith(ctx, big{})
			return hangs(nil)(ctx, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				handler(consumerWith(nil), fn, natsworker.Options{Limits: &timeout.Config{Idle: 5 * time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))})(newFakeMsg(1))
				if n := log.Len(); n == 0 || n > 1<<20 || !strings.Contains(log.String(), " bytes more)") {
					t.Errorf("%d bytes of log", n)
				}
			})
		})
	}
}

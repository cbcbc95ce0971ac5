package natsworker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

var errBroken = errors.New("broken")

func fails(err error) func(context.Context, jetstream.Msg) error {
	return func(context.Context, jetstream.Msg) error { return err }
}

// hangs until its context ends, and returns err then.
func hangs(err error) func(context.Context, jetstream.Msg) error {
	return func(ctx context.Context, _ jetstream.Msg) error {
		<-ctx.Done()
		return err
	}
}

// beats for too long.
func beats(ctx context.Context, _ jetstream.Msg) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
			heartbeat.Beat(ctx)
		}
	}
}

// detail says how far it is, and hangs.
func detail(ctx context.Context, _ jetstream.Msg) error {
	heartbeat.BeatWith(ctx, "3 of 7")
	<-ctx.Done()
	return nil
}

// deaf goes on for a minute, whatever its context says.
func deaf(context.Context, jetstream.Msg) error {
	time.Sleep(time.Minute)
	return nil
}

// Guarantee 3: what the server hears of each outcome, and when.
func TestOutcome(t *testing.T) {
	limits := timeout.Config{Idle: 5 * time.Second, Total: 8 * time.Second, Grace: 3 * time.Second}
	const idle = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
	tests := map[string]struct {
		fn         func(context.Context, jetstream.Msg) error
		delivery   uint64
		maxDeliver int
		opts       natsworker.Options // Limits are those above unless set
		want       string
	}{
		"done":                               {fn: fails(nil), want: "0s double ack"},
		"failed":                             {fn: fails(errBroken), want: "0s nak 1s"},
		"failed again":                       {fn: fails(errBroken), delivery: 2, want: "0s nak 2s"},
		"failed for the sixth time":          {fn: fails(errBroken), delivery: 6, want: "0s nak 32s"},
		"failed beyond counting":             {fn: fails(errBroken), delivery: 1 << 63, want: "0s nak 1m0s"},
		"failed on the last delivery":        {fn: fails(errBroken), delivery: 3, maxDeliver: 3, want: "0s term delivery 3 of 3: broken"},
		"idle":                               {fn: hangs(nil), want: "5s nak"},
		"idle again":                         {fn: hangs(nil), delivery: 2, want: "5s nak 2s"},
		"idle on the last delivery":          {fn: hangs(nil), delivery: 2, maxDeliver: 2, want: "5s term delivery 2 of 2: " + idle},
		"idle after a detail, the last time": {fn: detail, delivery: 2, maxDeliver: 2, want: "5s term delivery 2 of 2: " + idle + "; last: 3 of 7"},
		"total":                              {fn: beats, want: "8s nak"},
		"abandoned":                          {fn: deaf, want: "8s nak 3s"},
		"abandoned again, back-off is":       {fn: deaf, delivery: 3, want: "8s nak 4s"},
		"rejected":                           {fn: fails(natsworker.Reject(errBroken)), want: "0s term broken"},
		"rejected below":                     {fn: fails(fmt.Errorf("file: %w", natsworker.Reject(errBroken))), want: "0s term file: broken"},
		"rejected, but it was stopped":       {fn: hangs(natsworker.Reject(errBroken)), want: "5s nak"},
		"later":                              {fn: fails(natsworker.After(time.Hour, errBroken)), want: "0s nak 1h0m0s"},
		"later, nothing wrong":               {fn: fails(natsworker.After(time.Hour, nil)), want: "0s nak 1h0m0s"},
		"later, but it was stopped":          {fn: hangs(natsworker.After(time.Hour, nil)), want: "5s nak"},
		"later, on the last delivery":        {fn: fails(natsworker.After(time.Hour, nil)), delivery: 1, maxDeliver: 1, want: "0s term delivery 1 of 1: again in 1h0m0s"},
		"rejected and later":                 {fn: fails(natsworker.After(time.Hour, natsworker.Reject(errBroken))), want: "0s term broken"},
		"panicked":                           {fn: func(context.Context, jetstream.Msg) error { panic("oh") }, delivery: 2, want: "0s nak 2s"},
		"ended its goroutine":                {fn: func(context.Context, jetstream.Msg) error { runtime.Goexit(); return nil }, want: "0s nak 1s"},
		"rejected an inner timeout":          {fn: fails(natsworker.Reject(&timeout.Error{Kind: timeout.ErrIdle})), want: "0s term " + (&timeout.Error{Kind: timeout.ErrIdle}).Error()},
		"failed with a nil pointer":          {fn: fails((*nilError)(nil)), want: "0s nak 1s"},
		"an inner abort":                     {fn: fails(&timeout.Error{Kind: timeout.ErrAborted}), want: "0s nak 1s"},
		"back-off of one's own":              {fn: fails(errBroken), delivery: 3, opts: natsworker.Options{Backoff: 10 * time.Millisecond, MaxBackoff: time.Second}, want: "0s nak 40ms"},
		"back-off up to its end":             {fn: fails(errBroken), delivery: 3, opts: natsworker.Options{Backoff: 10 * time.Second, MaxBackoff: 35 * time.Second}, want: "0s nak 35s"},
		"back-off longer than its end":       {fn: fails(errBroken), opts: natsworker.Options{Backoff: time.Minute, MaxBackoff: time.Second}, want: "0s nak 1s"},
		"negative back-off":                  {fn: fails(errBroken), opts: natsworker.Options{Backoff: -1, MaxBackoff: -1}, want: "0s nak"},
		"back-off without an end of its own": {fn: fails(errBroken), delivery: 9, opts: natsworker.Options{Backoff: 10 * time.Second}, want: "0s nak 1m0s"},
		"back-off without a start":           {fn: fails(errBroken), delivery: 2, opts: natsworker.Options{MaxBackoff: time.Hour}, want: "0s nak 2s"},
		"a limit of its own goes before":     {fn: hangs(nil), opts: limited(timeout.Config{Idle: time.Second}), want: "1s nak"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(func(c *jetstream.ConsumerConfig) {
					if test.maxDeliver > 0 {
						c.MaxDeliver = test.maxDeliver
					}
				})
				m := newFakeMsg(max(test.delivery, 1))
				m.brief = true
				if test.opts.Limits == nil {
					test.opts.Limits = &limits
				}
				handler(c, test.fn, test.opts)(m)
				if diff := cmp.Diff([]string{test.want}, m.heard()); diff != "" {
					t.Error(diff)
				}
				time.Sleep(time.Hour) // nothing comes later, and the deaf have returned
				if n := len(m.heard()); n != 1 {
					t.Errorf("said later: %q", m.heard())
				}
			})
		})
	}
}

// A nilError is a mistake that is easily made, and may not end the process.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// A reason may not keep the message from being terminated, nor be cut within a character.
func TestReasonIsBounded(t *testing.T) {
	for _, n := range []int{1023, 1024, 1025, 1026, 1027, 1 << 21} {
		m := newFakeMsg(1)
		text := strings.Repeat("x", n%4) + strings.Repeat("€", n/3+1)
		handler(consumerWith(nil), fails(natsworker.Reject(errors.New(text))), natsworker.Options{})(m)
		said := m.heard()[0]
		_, got, _ := strings.Cut(said, "term ")
		if len(got) > 1024 || len(got) < 1021 || !utf8.ValidString(got) || !strings.HasPrefix(text, got) {
			t.Errorf("of %d bytes: %d, valid %v", len(text), len(got), utf8.ValidString(got))
		}
	}
	short := strings.Repeat("y", 1024)
	m := newFakeMsg(1)
	handler(consumerWith(nil), fails(natsworker.Reject(errors.New(short))), natsworker.Options{})(m)
	if !strings.HasSuffix(m.heard()[0], "term "+short) {
		t.Error("1024 bytes are cut")
	}
}

func TestErrorsKeepTheirTree(t *testing.T) {
	for name, err := range map[string]error{"Reject": natsworker.Reject(errBroken), "After": natsworker.After(time.Second, errBroken)} {
		if !errors.Is(err, errBroken) || err.Error() != "broken" {
			t.Errorf("%s returns %v", name, err)
		}
	}
}

// What is wrong in the program panics, and what the server or a flag says is an error; both are a *timeout.ConfigError.
func TestBadInput(t *testing.T) {
	fn, none := fails(nil), natsworker.Options{}
	good := consumerWith(nil)
	all := consumerWith(func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy })
	hasty := consumerWith(func(c *jetstream.ConsumerConfig) { c.AckWait = 30 }) // of a number of seconds without a unit
	backOff := func(d ...time.Duration) jetstream.Consumer {
		return consumerWith(func(c *jetstream.ConsumerConfig) { c.BackOff = d })
	}
	groups := consumerWith(func(c *jetstream.ConsumerConfig) { c.PriorityGroups = []string{"EU"} })
	handle := func(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts natsworker.Options) func() error {
		return func() error { _, err := natsworker.Handler(c, fn, opts); return err }
	}
	run := func(c jetstream.Consumer, n int, fn func(context.Context, jetstream.Msg) error) func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return func() error { return natsworker.Run(ctx, c, n, fn, none) }
	}
	const wrong = `natsworker: consumer "workers": timeout: AckPolicy="AckAll": want AckExplicit`
	for name, test := range map[string]struct {
		call func() error
		want string // of the error, or of the panic
	}{
		"Handler, no consumer":      {handle(nil, fn, none), `panic: timeout: natsworker consumer="nil": want a consumer`},
		"Handler, no function":      {handle(good, nil, none), `panic: timeout: natsworker function="nil": want a function`},
		"Handler, AckAll":           {handle(all, fn, none), wrong},
		"Handler, no time":          {handle(hasty, fn, none), `natsworker: consumer "workers": timeout: AckWait="30ns": want 3ms or more`},
		"Handler, zero BackOff":     {handle(backOff(time.Minute, 0), fn, none), `natsworker: consumer "workers": timeout: BackOff="0s": want 3ms or more`},
		"Handler, negative BackOff": {handle(backOff(-1, time.Minute), fn, none), `natsworker: consumer "workers": timeout: BackOff="-1ns": want 3ms or more`},
		"Handler, short BackOff":    {handle(backOff(time.Minute, 3*time.Millisecond-1), fn, none), `natsworker: consumer "workers": timeout: BackOff="2.999999ms": want 3ms or more`},
		"Handler, shortest BackOff": {handle(backOff(time.Minute, 3*time.Millisecond), fn, none), "<nil>"},
		"Handler, unknown":          {handle(unknown{}, fn, none), `natsworker: timeout: CachedInfo="nil": want a consumer of js.Consumer or js.CreateOrUpdateConsumer`},
		"Handler, a drain":          {handle(good, fn, natsworker.Options{Drain: 1}), `panic: timeout: natsworker.Options.Drain="1ns": want none for a Handler, or Run`},
		"Handler, groups":           {handle(groups, fn, none), "<nil>"},
		"Run, no consumer":          {run(nil, 1, fn), `panic: timeout: natsworker consumer="nil": want a consumer`},
		"Run, AckAll":               {run(all, 1, fn), wrong},
		"Run, groups":               {run(groups, 1, fn), `natsworker: consumer "workers": timeout: PriorityGroups="[EU]": want none, or a Handler`},
		"Run, 0 at a time":          {run(good, 0, fn), `natsworker: timeout: messages at a time="0": want 1 or more`},
		"Run, it is over":           {run(good, 1, fn), "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			got := func() (text string) {
				defer func() {
					if r := recover(); r != nil {
						text = fmt.Sprint("panic: ", r.(*timeout.ConfigError))
					}
				}()
				err := test.call()
				if bad := (*timeout.ConfigError)(nil); err != nil && !errors.As(err, &bad) {
					t.Errorf("%T", err)
				}
				return fmt.Sprint(err)
			}()
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

type unknown struct{ jetstream.Consumer }

func (unknown) CachedInfo() *jetstream.ConsumerInfo { return nil }

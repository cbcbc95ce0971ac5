package natsworker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A worker calls a function for the messages of a consumer.
type worker struct {
	Options
	log        logger
	c          jetstream.Consumer
	info       *jetstream.ConsumerInfo // read by newWorker
	fn         func(context.Context, jetstream.Msg) error
	lease      time.Duration // AckWait, or the shortest BackOff
	maxDeliver int           // MaxDeliver; 0 or less means no limit

	*owner // nil in a Handler
}

// defaultAckWait is the AckWait that the server sets by default.
const defaultAckWait = 30 * time.Second

// newWorker returns a worker without an owner. Its panics and errors are those of [Handler].
func newWorker(c jetstream.Consumer, fn func(context.Context, jetstream.Msg) error, opts Options) (*worker, error) {
	if c == nil {
		panic(&timeout.ConfigError{Key: "natsworker consumer", Value: "nil", Accepted: "a consumer"})
	}
	if fn == nil {
		panic(&timeout.ConfigError{Key: "natsworker function", Value: "nil", Accepted: "a function"})
	}
	info := c.CachedInfo()
	if info == nil {
		return nil, fmt.Errorf("natsworker: %w", &timeout.ConfigError{Key: "CachedInfo", Value: "nil", Accepted: "a consumer of js.Consumer or js.CreateOrUpdateConsumer"})
	}
	if p := info.Config.AckPolicy; p != jetstream.AckExplicitPolicy {
		return nil, unfit(info, "AckPolicy", p, jetstream.AckExplicitPolicy.String())
	}
	opts = opts.withDefaults()
	if p := opts.Policy.Current(); opts.Policy != nil {
		for pattern := range p.Tools {
			if _, err := p.Resolve(pattern, 0); err != nil { // an error at each message would in the end terminate it
				return nil, fmt.Errorf("natsworker: consumer %q: %w", info.Name, err)
			}
		}
	}
	w := &worker{Options: opts, log: logger{to: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))}, c: c, info: info, fn: fn, maxDeliver: info.Config.MaxDeliver}
	w.lease = info.Config.AckWait
	if w.lease <= 0 {
		w.lease = defaultAckWait
	}
	const least = 3 * time.Millisecond      // below it lease.Run would panic, or take 0 or less for a lease without an end
	for _, d := range info.Config.BackOff { // with a BackOff, the server ignores AckWait
		if d < least {
			return nil, unfit(info, "BackOff", d, least.String()+" or more")
		}
		w.lease = min(w.lease, d)
	}
	if w.lease < least {
		return nil, unfit(info, "AckWait", w.lease, least.String()+" or more")
	}
	if len(info.Config.BackOff) > 0 {
		w.warn("the consumer has a BackOff: naks are delayed for longer than they say",
			"stream", info.Stream, "consumer", info.Name)
	}
	return w, nil
}

// unfit returns the error for a consumer whose setting key has the value, instead of an accepted one.
func unfit(info *jetstream.ConsumerInfo, key string, value any, accepted string) error {
	return fmt.Errorf("natsworker: consumer %q: %w", info.Name, &timeout.ConfigError{Key: key, Value: fmt.Sprint(value), Accepted: accepted})
}

// every returns the interval of renewals, a sixth of the lease. When an outage begins, the last renewal may be that
// old, so a longer interval shortens the longest outage that costs no work. A renewal costs some 50 µs of processor
// time on both sides together.
func (w *worker) every() time.Duration { return w.lease / 6 }

// attempt returns the longest wait for one answer of the server.
func (w *worker) attempt() time.Duration { return min(w.lease/6, 5*time.Second) }

func (w *worker) warn(what string, args ...any) {
	w.log.write(func(l *slog.Logger) { l.Warn(what, args...) })
}

// An owner is the part of a worker that only Run has, because Run alone uses the consumer.
type owner struct {
	pulling context.Context // done when no more messages are to be pulled

	// probing is full while a goroutine calls c.Info, which is not safe for concurrent use.
	probing chan struct{}

	mu    sync.Mutex
	shut  bool           // beginPull returns false from now on
	pulls sync.WaitGroup // the outstanding pull requests
}

// probe makes a round trip to the server, and returns an error if it fails or takes longer than w.attempt.
func (w *worker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.attempt())
	defer cancel()
	select { // if ctx has ended too, Info returns its error
	case w.probing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.probing }()
	_, err := w.c.Info(ctx)
	return err
}

// beginPull adds a pull request to pulls. It returns false, and adds none, if the worker is stopping.
func (o *owner) beginPull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut || o.pulling.Err() != nil {
		return false
	}
	o.pulls.Add(1)
	return true
}

// waitForPulls waits until no pull request is outstanding, if the worker is stopping. Otherwise the server would
// deliver a message that is given back to a pull request of the same worker, which would give it back too, and each of
// these deliveries counts towards MaxDeliver.
func (o *owner) waitForPulls() {
	if o == nil || o.pulling.Err() == nil {
		return
	}
	o.mu.Lock()
	o.shut = true
	o.mu.Unlock()
	o.pulls.Wait()
}

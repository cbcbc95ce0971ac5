package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

type modelError struct{ text string }

func (e *modelError) Error() string { return e.text }

// A driver takes a schedule through the real thing.
type driver struct {
	base time.Time

	fns      sync.WaitGroup
	mu       sync.Mutex
	ctxs     map[int]context.Context
	releases map[int]func()
	seen     []*seen
}

// The observations of one execution.
type seen struct {
	start    time.Duration
	called   bool
	deadline time.Duration // that the function's context shows, or never

	doneAt   time.Duration // when an attentive function saw its context done, or -1
	cause    error         // of the context, then ...
	ctxErr   error         // ... and its Err
	returned error         // what the function returned, if it did
	finished bool

	over  bool // Run returned
	at    time.Duration
	value int
	err   error

	count uint64 // of the monitor, after that
	last  time.Duration

	calls hookCalls
	near  []time.Duration // instants of NearIdle
	// What would have stopped it, where limits are only observed, and the instants.
	exceeded   []*timeout.Error
	exceededAt []time.Duration
	observed   *timeout.Error // what Finished says of it

	ctxCause   error // in the end
	finalCount uint64
}

// stop is when the execution was stopped, and why, if it was.
func (o *seen) stop() (time.Duration, timeout.Kind, bool) {
	if e, ok := o.err.(*timeout.Error); ok && o.called {
		return o.start + e.Elapsed, e.Kind, e != o.returned
	}
	return 0, 0, false
}

func drive(s *schedule) *driver {
	d := &driver{base: time.Now(), ctxs: map[int]context.Context{}, releases: map[int]func(){}}
	for range s.scripts {
		d.seen = append(d.seen, &seen{doneAt: -1, deadline: never})
	}
	ctx := context.Background()
	if s.caller.deadline != never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.base.Add(s.caller.deadline))
		defer cancel()
	}
	if s.caller.cancel != never {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		if s.caller.cancel == 0 {
			cancel(errModelCaller)
		} else {
			defer time.AfterFunc(s.caller.cancel, func() { cancel(errModelCaller) }).Stop()
		}
	}
	d.run(ctx, s.root)
	d.fns.Wait() // for those that were abandoned
	for id, ctx := range d.ctxs {
		m := heartbeat.FromContext(ctx)
		m.Beat()
		d.seen[id].ctxCause, d.seen[id].finalCount = context.Cause(ctx), m.Count()
	}
	return d
}

type hookCalls struct{ started, exceeded, finished, abandoned, returned int }

func (d *driver) now() time.Duration { return time.Since(d.base) }

func (d *driver) run(ctx context.Context, sc *script) {
	o := d.seen[sc.id]
	o.start = d.now()
	begun := make(chan struct{})
	fn := func(ctx context.Context) (int, error) {
		d.fns.Add(1)
		defer d.fns.Done()
		d.mu.Lock()
		d.ctxs[sc.id] = ctx
		d.mu.Unlock()
		close(begun)
		o.called = true
		if t, ok := ctx.Deadline(); ok {
			o.deadline = t.Sub(d.base)
		}
		d.play(ctx, sc, o)
		err := d.result(ctx, sc)
		d.mu.Lock()
		o.finished, o.returned = true, err
		d.mu.Unlock()
		return 100 + sc.id, err
	}
	var v int
	var err error
	opts := []timeout.Option{timeout.WithName(fmt.Sprint("tool", sc.id)), sc.config}
	if sc.hooks {
		opts = append(opts, timeout.WithHooks(d.hooks(o)))
	}
	if sc.observe {
		opts = append(opts, timeout.WithObserveOnly())
	}
	if sc.do {
		v, err = timeout.Do(ctx, fn, opts...)
	} else {
		err = timeout.Run(ctx, func(ctx context.Context) error { _, err := fn(ctx); return err }, opts...)
	}
	if e, ok := err.(*timeout.Error); ok && e.Abandoned {
		<-begun // without a grace it may have been abandoned before
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o.over, o.at, o.value, o.err = true, d.now(), v, err
	if m := heartbeat.FromContext(d.context(sc.id)); m != nil {
		o.count, o.last = m.Count(), m.Last().Sub(d.base)
	}
}

func (d *driver) hooks(o *seen) timeout.Hooks {
	count := func(n *int) func(context.Context, timeout.Snapshot) {
		return func(context.Context, timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			*n++
		}
	}
	return timeout.Hooks{
		Started: count(&o.calls.started),
		Finished: func(_ context.Context, s timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			o.calls.finished++
			o.observed = s.Observed
		},
		Exceeded: func(_ context.Context, s timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if !s.ObserveOnly {
				o.calls.exceeded++
				return
			}
			o.exceeded = append(o.exceeded, s.Err.(*timeout.Error))
			o.exceededAt = append(o.exceededAt, d.now())
		},
		Abandoned: count(&o.calls.abandoned), Returned: count(&o.calls.returned),
		NearIdle: func(context.Context, timeout.Snapshot) {
			d.mu.Lock()
			defer d.mu.Unlock()
			o.near = append(o.near, d.now())
		},
	}
}

func (d *driver) context(id int) context.Context {
	if ctx := d.ctxs[id]; ctx != nil {
		return ctx
	}
	return context.Background()
}

// play is the function's life up to its return.
func (d *driver) play(ctx context.Context, sc *script, o *seen) {
	for _, st := range sc.steps {
		if !d.wait(ctx, sc, o, st.at) {
			return
		}
		d.do(ctx, st)
	}
	d.wait(ctx, sc, o, sc.end)
}

// wait waits until an instant. It reports false if an attentive function has seen
// its context done, and has taken the late steps.
func (d *driver) wait(ctx context.Context, sc *script, o *seen, until time.Duration) bool {
	if !sc.attentive {
		time.Sleep(until - d.now())
		return true
	}
	timer := time.NewTimer(max(0, until-d.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	o.doneAt, o.cause, o.ctxErr = d.now(), context.Cause(ctx), ctx.Err()
	time.Sleep(sc.linger)
	for _, st := range sc.late {
		d.do(ctx, st)
	}
	return false
}

func (d *driver) do(ctx context.Context, st step) {
	d.mu.Lock()
	of, release := d.context(st.of), d.releases[st.hold]
	d.mu.Unlock()
	switch st.op {
	case opBeat:
		heartbeat.Beat(of)
	case opDetail:
		heartbeat.BeatWith(of, st.at)
	case opMonitor:
		heartbeat.FromContext(of).Beat()
	case opBurst:
		for range st.n {
			heartbeat.Beat(of)
			if st.every > 0 {
				time.Sleep(st.every)
			}
		}
	case opHold:
		release := heartbeat.Hold(of)
		d.mu.Lock()
		d.releases[st.hold] = release
		d.mu.Unlock()
	case opRelease:
		if release != nil {
			release()
		}
	case opRun:
		d.run(ctx, st.sub)
	}
}

func (d *driver) result(ctx context.Context, sc *script) error {
	switch sc.result {
	case resultOwn:
		return errModelOwn
	case resultCtx:
		return ctx.Err()
	case resultMix:
		return errors.Join(errModelOwn, context.Cause(ctx))
	case resultSub:
		for i := len(sc.steps) - 1; i >= 0; i-- {
			if sub := sc.steps[i].sub; sub != nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				return d.seen[sub.id].err
			}
		}
	}
	return nil
}

package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A run takes a schedule through the real thing and notes what it sees.
type run struct {
	*schedule
	base time.Time
	over chan struct{} // closed when everything has ended

	mu       sync.Mutex
	releases map[int]func()
	holders  map[int]int // of which execution a hold is
	seen     []*seen     // by id
	events   []event
	probes   []*probed
	left     []string // what is left in the end
	wrong    []string
}

// An event is something that bears on a heartbeat. Those at one instant are in the order in which they were
// made, unless one was made aside, by a hook, a look or an abandoned function.
type event struct {
	at     time.Duration
	what   happening
	of     int // the execution
	hold   int
	counts uint64 // a sign that is a beat counts one
	detail any
	aside  bool
}

type happening int

const (
	aSign  happening = iota
	aStart           // of an execution within
	aHold
	aRelease
	aClose // of a probe
	anEnd
)

// A call is one of a hook or of the log handler.
type call struct {
	who      string // "own", "log" or the watcher
	hook     int    // -1 for a record
	text     string // of a record
	at, end  time.Duration
	snapshot timeout.Snapshot
	ctxErr   error
}

// A hand is a call of Abort or BeginClosing.
type hand struct {
	at    time.Duration
	aside bool
	ok    bool
	cause error
}

// A look is what an execution says of itself at an instant.
type look struct {
	at       time.Duration
	events   int // those before it
	snapshot timeout.Snapshot
	left     time.Duration
	bounded  bool
}

// A probed is a probe of the heartbeat of an execution, and each of its looks.
type probed struct {
	of       int
	from, to time.Duration
	takes    time.Duration
	until    time.Duration
	asked    []time.Duration
	looks    [][2]time.Duration // begin and end
	pulse    *pulse.Probe
	turn     chan struct{}
}

const recent = 200 * time.Millisecond

// The observations of one execution.
type seen struct {
	*script
	around *seen
	start  time.Duration

	called   bool
	calledAt time.Duration
	ctx      context.Context
	deadline time.Duration // that the function's context shows, or never

	doneAt      time.Duration // when an attentive function saw its context done, or never
	cancelledAt time.Duration // when a function registered with the context was called, or never
	closedAt    time.Duration // when the channel of Closing was closed, or never

	finished   bool
	finishedAt time.Duration
	returned   error // what the function returned, if it did

	over     bool // Run returned
	at       time.Duration
	value    int
	err      error
	panicked any

	calls          []*call
	looks          []look
	stops, closing []hand

	// What follows from it, see settle.
	begun bool           // it was started
	left  time.Duration  // when its goroutine was through, or never
	stop  *timeout.Error // what stopped it, if anything did ...
	end   time.Duration  // ... when that was, or else left
	ties  int            // for life at that instant

	last  timeout.Snapshot // in the end
	count uint64           // of the monitor, when Run has returned
	later uint64           // and in the end
	cause error            // of the context, in the end, with its Err
	done  error
}

func (r *run) now() time.Duration { return time.Since(r.base) }

func (r *run) note(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.at = r.now()
	if r.seen[e.of].over { // a function that was abandoned
		e.aside = true
	}
	r.events = append(r.events, e)
}

func perform(s *schedule) *run {
	r := &run{schedule: s, base: time.Now(), over: make(chan struct{}), releases: map[int]func(){}, holders: map[int]int{}}
	for _, sc := range s.scripts {
		r.seen = append(r.seen, &seen{script: sc, deadline: never, doneAt: never, cancelledAt: never, closedAt: never, finishedAt: never, at: never})
	}
	ctx := context.Background()
	if s.caller.inherited {
		defer timeout.SetInherited(r.base.Add(s.caller.deadline), errBudget)()
	} else if s.caller.deadline != never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, r.base.Add(s.caller.deadline), errBudget)
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
	for i, w := range s.watchers {
		register := func() {
			stop := timeout.Watch(r.hooks(fmt.Sprint("watcher ", i), w.manners))
			go func() {
				select {
				case <-time.After(w.to - r.now()):
				case <-r.over:
				}
				stop()
				stop()
			}()
		}
		if w.from == 0 {
			register()
		} else {
			time.AfterFunc(w.from, register)
		}
	}
	r.run(ctx, s.root, nil)
	time.Sleep(20_000 * time.Hour) // for what was abandoned
	for _, o := range r.seen {
		if o.called {
			m := heartbeat.FromContext(o.ctx)
			m.Beat()
			x := timeout.FromContext(o.ctx)
			o.last, o.later, o.cause, o.done = x.Snapshot(), m.Count(), context.Cause(o.ctx), o.ctx.Err()
			if x.Abort(nil) || x.BeginClosing() {
				r.bad(o, "SPEC 3.15", "it can be aborted or made closing after its end")
			}
		}
	}
	close(r.over)
	synctest.Wait()
	if n := timeout.AbandonedCount(); n != 0 {
		r.left = append(r.left, fmt.Sprint(n, " abandoned"))
	}
	for _, x := range timeout.Running() {
		r.left = append(r.left, x.String())
	}
	return r
}

func (r *run) run(ctx context.Context, sc *script, around *seen) {
	o := r.seen[sc.id]
	o.around, o.start = around, r.now()
	if around != nil {
		r.note(event{what: aStart, of: around.id, counts: 1, hold: sc.id})
		if sc.between > o.start {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, r.base.Add(sc.between), errBudget)
			defer cancel()
		}
	}
	fn := func(ctx context.Context) (int, error) {
		r.mu.Lock()
		o.called, o.calledAt, o.ctx = true, r.now(), ctx
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			o.finished, o.finishedAt = true, r.now()
		}()
		if t, ok := ctx.Deadline(); ok {
			o.deadline = t.Sub(r.base)
		}
		context.AfterFunc(ctx, func() { r.instant(&o.cancelledAt) })
		closing := timeout.Closing(ctx)
		go func() {
			select {
			case <-closing:
				r.instant(&o.closedAt)
			case <-r.over:
			}
		}()
		r.play(ctx, sc, o)
		switch {
		case sc.result == resultExit:
			runtime.Goexit()
		case sc.result == resultPanic && sc.id%2 == 0:
			panic(errModelOwn)
		case sc.result == resultPanic:
			panic("boom")
		}
		err := r.result(ctx, sc)
		o.returned = err
		return 100 + sc.id, err
	}
	opts := []timeout.Option{timeout.WithName(tool(sc.id)), sc.config, timeout.Need(sc.need)}
	if sc.hooks != nil {
		opts = append(opts, timeout.WithHooks(r.hooks("own", *sc.hooks)))
	}
	if sc.observe {
		opts = append(opts, timeout.WithObserveOnly())
	}
	if sc.recovers {
		opts = append(opts, timeout.WithRecover())
	}
	if sc.clocked {
		opts = append(opts, timeout.WithClock(clock.New()))
	}
	if sc.logger != nil {
		opts = append(opts, timeout.WithLogger(slog.New(&simulatedLog{r: r, o: o})))
	}
	var v int
	var err error
	func() {
		defer func() { o.panicked = recover() }()
		if sc.do {
			v, err = timeout.Do(ctx, fn, opts...)
		} else {
			err = timeout.Run(ctx, func(ctx context.Context) error { _, err := fn(ctx); return err }, opts...)
		}
	}()
	r.note(event{what: anEnd, of: sc.id})
	r.mu.Lock()
	defer r.mu.Unlock()
	o.over, o.at, o.value, o.err = true, r.now(), v, err
	if o.called {
		o.count = heartbeat.FromContext(o.ctx).Count()
	}
}

// handCauses are what somebody aborts with: of those some look like a timeout.
var handCauses = []error{errModelHand, nil, context.DeadlineExceeded, &timeout.Error{Kind: timeout.ErrTotal}}

func tool(id int) string { return fmt.Sprint("tool", id) }

func (r *run) instant(at *time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*at = r.now()
}

func (r *run) called(id int) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[id].ctx
}

// isOver reports whether the call of an execution has returned, so that its function has been abandoned.
func (r *run) isOver(o *seen) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.over
}

// play is the function's life up to its return.
func (r *run) play(ctx context.Context, sc *script, o *seen) {
	for _, st := range sc.steps {
		if !r.wait(ctx, sc, o, st.at) {
			return
		}
		r.do(ctx, o, st)
	}
	r.wait(ctx, sc, o, sc.end)
}

// wait waits until an instant. It reports false if an attentive function has seen
// its context done, and has taken the late steps.
func (r *run) wait(ctx context.Context, sc *script, o *seen, until time.Duration) bool {
	if !sc.attentive {
		time.Sleep(until - r.now())
		return true
	}
	timer := time.NewTimer(max(0, until-r.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	r.instant(&o.doneAt)
	time.Sleep(sc.linger)
	for _, st := range sc.late {
		r.do(ctx, o, st)
	}
	return false
}

func (r *run) do(ctx context.Context, o *seen, st step) {
	if st.op == opRun {
		r.run(ctx, st.sub, o)
		return
	}
	of := r.called(st.of)
	if of == nil {
		return // it has not been called
	}
	x := timeout.FromContext(of)
	switch st.op {
	case opBeat, opMonitor:
		r.note(event{what: aSign, of: st.of, counts: 1})
		if st.op == opBeat {
			heartbeat.Beat(of)
		} else {
			heartbeat.FromContext(of).Beat()
		}
	case opDetail:
		r.note(event{what: aSign, of: st.of, counts: 1, detail: st.at})
		heartbeat.BeatWith(of, st.at)
	case opBurst:
		for range st.n {
			r.note(event{what: aSign, of: st.of, counts: 1})
			heartbeat.Beat(of)
			if st.every > 0 {
				time.Sleep(st.every)
			}
		}
	case opHold:
		r.note(event{what: aHold, of: st.of, hold: st.hold})
		release := heartbeat.Hold(of)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.releases[st.hold], r.holders[st.hold] = release, st.of
	case opRelease:
		r.mu.Lock()
		release, holder := r.releases[st.hold], r.holders[st.hold]
		r.mu.Unlock()
		if release != nil {
			r.note(event{what: aRelease, of: holder, hold: st.hold})
			release()
			release()
		}
	case opAbort:
		r.abort(st.of, x, handCauses[int(st.at)%len(handCauses)], r.isOver(o))
	case opClose:
		r.close(st.of, x, r.isOver(o))
	case opLook:
		r.look(of, r.seen[st.of])
	case opProbe:
		r.probe(o, st)
	}
}

func (r *run) abort(id int, x *timeout.Execution, cause error, aside bool) {
	h := hand{at: r.now(), ok: x.Abort(cause), cause: cause, aside: aside}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id].stops = append(r.seen[id].stops, h)
}

func (r *run) close(id int, x *timeout.Execution, aside bool) {
	h := hand{at: r.now(), ok: x.BeginClosing(), aside: aside}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id].closing = append(r.seen[id].closing, h)
}

func (r *run) look(ctx context.Context, o *seen) {
	l := look{at: r.now(), snapshot: timeout.FromContext(ctx).Snapshot()}
	l.left, l.bounded = timeout.Remaining(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	l.events = len(r.events)
	o.looks = append(o.looks, l)
}

// probe registers a probe of o, or closes the one that there is.
func (r *run) probe(o *seen, st step) {
	for _, p := range r.probes {
		if p.of == o.id && p.to == never {
			r.mu.Lock()
			p.to = r.now()
			r.mu.Unlock()
			r.note(event{what: aClose, of: o.id})
			p.pulse.Close()
			return
		}
	}
	p := &probed{of: o.id, from: r.now(), to: never, takes: st.every, until: st.until, turn: make(chan struct{}, 1)}
	cell := pulse.Of(o.ctx)
	once := func() {
		<-p.turn
		defer func() { p.turn <- struct{}{} }()
		begin := r.now()
		p.pulse.Begin()
		found := begin < p.until && len(p.looks) < 20 // or a tiny limit would have it looked for ever
		time.Sleep(p.takes)
		if found {
			r.note(event{what: aSign, of: o.id, counts: 1, aside: true})
			cell.Beat()
		}
		r.mu.Lock()
		p.looks = append(p.looks, [2]time.Duration{begin, r.now()})
		r.mu.Unlock()
		p.pulse.End()
	}
	r.mu.Lock()
	r.probes = append(r.probes, p)
	r.mu.Unlock()
	p.pulse = cell.Probe(recent, func() {
		r.mu.Lock()
		p.asked = append(p.asked, r.now())
		r.mu.Unlock()
		once()
	})
	p.turn <- struct{}{}
	time.AfterFunc((st.until-r.now())/2, once)
}

func (r *run) result(ctx context.Context, sc *script) error {
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
				return r.seen[sub.id].err
			}
		}
	}
	return nil
}

// hooks note each call and then behave as they are told.
func (r *run) hooks(who string, m manners) (h timeout.Hooks) {
	fields := reflect.ValueOf(&h).Elem()
	for i := 1; i < hookCount; i++ {
		fields.Field(i).Set(reflect.ValueOf(func(ctx context.Context, s timeout.Snapshot) { r.hook(who, i, m, ctx, s) }))
	}
	h.Context = func(ctx context.Context, s timeout.Snapshot) context.Context {
		r.hook(who, hookContext, m, ctx, s)
		return enrich(ctx, m.enrich)
	}
	return h
}

const enrichments = 6

// enrich is what a hook makes of the caller's context.
func enrich(ctx context.Context, how int) context.Context {
	switch how {
	case 1:
		return nil
	case 2:
		return context.WithValue(ctx, callerKey{}, how)
	case 3:
		return context.Background()
	case 4:
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("the hook's"))
		return ctx
	case 5:
		ctx, cancel := context.WithTimeout(ctx, 1)
		context.AfterFunc(ctx, cancel)
		return ctx
	}
	return ctx
}

func (r *run) hook(who string, hook int, m manners, ctx context.Context, s timeout.Snapshot) {
	var id int
	if _, err := fmt.Sscanf(s.Tool, "tool%d", &id); err != nil {
		return // of an execution that a hook has run
	}
	o := r.seen[id]
	c := r.began(o, &call{who: who, hook: hook, snapshot: s})
	defer r.ended(c)
	if hook != hookContext {
		c.ctxErr = ctx.Err()
	}
	r.behave(m.acts[hook], o, ctx)
}

func (r *run) began(o *seen, c *call) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.at, c.end = r.now(), never
	o.calls = append(o.calls, c)
	return c
}

func (r *run) ended(c *call) { r.instant(&c.end) }

func (r *run) behave(a act, o *seen, ctx context.Context) {
	x := timeout.FromContext(ctx)
	if x == nil || x.Snapshot().Tool != tool(o.id) {
		x = nil // in the hook Context, or in a record of what was not started
	}
	switch a.how {
	case slow:
		time.Sleep(a.long)
	case panics:
		panic("bad hook")
	case goexits:
		runtime.Goexit()
	case beats:
		if x != nil && len(o.calls) < 100 { // or one in NearIdle would go on and on
			r.note(event{what: aSign, of: o.id, counts: 1, aside: true})
			heartbeat.Beat(ctx)
		}
	case closes:
		if x != nil {
			r.close(o.id, x, true)
		}
	case aborts:
		if x != nil {
			r.abort(o.id, x, errModelHand, true)
		}
	case looks:
		x.Stack()
		x.Parent().Snapshot()
		for _, other := range timeout.Running() {
			other.Snapshot()
		}
		x.Snapshot()
		timeout.Watch(timeout.Hooks{})()
		_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, timeout.WithName("of a hook"))
	}
}

// A simulatedLog is the handler of a script's logger.
type simulatedLog struct {
	r *run
	o *seen
}

func (h *simulatedLog) Enabled(context.Context, slog.Level) bool { return true }

func (h *simulatedLog) Handle(ctx context.Context, rec slog.Record) error {
	c := h.r.began(h.o, &call{who: "log", hook: -1, text: strings.ReplaceAll(rec.Message, "\n", " ")})
	defer h.r.ended(c)
	h.r.behave(*h.o.logger, h.o, ctx)
	return nil
}

func (h *simulatedLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *simulatedLog) WithGroup(string) slog.Handler      { return h }

package natsworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// A run is what a scenario has shown.
type run struct {
	scenario
	*bench
	begun time.Time

	mu         sync.Mutex
	workers    []*simWorker // those that take another's place included
	links      []*simnet.Link
	executions []*execution
	blows      []blow
	left       map[uint64]bool // messages that the server has given up
	terms      []advisory
	undone     []string // why the run was ended
	history    []string
}

// A simWorker is one Run, or the Handlers of one consumer.
type simWorker struct {
	workerSpec
	number  int // of its spec
	link    *simnet.Link
	wire    *wire
	stop    func()
	stopped time.Time // zero until then
	ended   time.Time
	err     error
	done    chan struct{}
}

// An execution is what a function has seen of itself.
type execution struct {
	act
	message, delivery uint64
	by                *simWorker
	begun             time.Time
	beat              time.Time // the last one, or the beginning
	told              time.Time // when its context ended, zero if it did not
	cause             error
	returned          time.Time
	own               bool // it has acknowledged the message itself
	log               string
}

// until is when it no longer works on its message, as far as it is asked to.
func (e *execution) until() time.Time {
	if !e.told.IsZero() && e.told.Before(e.returned) {
		return e.told
	}
	return e.returned
}

// A blow is a time in which something was wrong for a worker, or for all.
type blow struct {
	number   int // -1 is all
	what     happening
	from, to time.Time
}

func (r *run) note(format string, args ...any) {
	r.history = append(r.history, fmt.Sprintf("%12v ", time.Since(r.begun))+fmt.Sprintf(format, args...))
}

// perform runs a scenario in a bubble.
func perform(t *testing.T, s scenario) *run {
	r := &run{scenario: s, left: map[uint64]bool{}}
	inBubble(t, func(c *jetstream.ConsumerConfig) {
		c.AckWait = s.AckWait
		if c.MaxDeliver = -1; s.MaxDeliver > 0 {
			c.MaxDeliver = s.MaxDeliver
		}
	}, func(b *bench) {
		r.bench, r.begun = b, time.Now()
		heard := b.advisories()
		var all sync.WaitGroup
		for i := range s.Workers {
			r.start(i)
		}
		all.Go(r.publishAll)
		for _, e := range s.Events {
			time.Sleep(time.Until(r.begun.Add(e.At)))
			r.happen(e)
		}
		all.Wait()
		time.Sleep(time.Second) // the consumer learns of the last message a little later
		for end, info := time.Now().Add(10*time.Minute), (*jetstream.ConsumerInfo)(nil); info == nil || info.NumPending > 0 || info.NumAckPending > 0; time.Sleep(s.AckWait / 3) {
			if c, err := b.js.Consumer(context.Background(), streamName, consumerName); err == nil {
				info = c.CachedInfo()
			}
			if time.Now().After(end) {
				r.undone = append(r.undone, fmt.Sprintf("%+v", info))
				break
			}
		}
		time.Sleep(time.Second) // the stream learns of the last ack a little later
		st, err := b.js.Stream(context.Background(), streamName)
		if err != nil {
			t.Fatal(err)
		}
		for m := range s.Messages {
			if _, err := st.GetMsg(context.Background(), uint64(m+1)); err == nil {
				r.left[uint64(m+1)] = true
			}
		}
		for i := 0; i < len(r.workers); i++ {
			r.end(r.workers[i])
		}
		time.Sleep(10 * s.AckWait) // for abandoned functions, and for what is said too late
		synctest.Wait()
		r.terms = heard("MSG_TERMINATED")
	})
	return r
}

func (r *run) publishAll() {
	order := make([]int, len(r.Messages))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return int(r.Messages[i].At - r.Messages[j].At) })
	sorted := make([]message, 0, len(order))
	for _, i := range order {
		sorted = append(sorted, r.Messages[i])
	}
	r.mu.Lock()
	r.Messages = sorted
	r.mu.Unlock()
	for i, m := range sorted {
		time.Sleep(time.Until(r.begun.Add(m.At)))
		r.eventually("the server to take a message", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := r.js.Publish(ctx, fmt.Sprintf("jobs.%d", i+1), nil, jetstream.WithMsgID(fmt.Sprint(i)))
			return err == nil
		})
	}
}

func (r *run) start(number int) {
	w := &simWorker{workerSpec: r.Workers[number], number: number, wire: new(wire), done: make(chan struct{})}
	w.link = r.link(w.wire)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	r.mu.Lock()
	r.workers, r.links = append(r.workers, w), append(r.links, w.link)
	r.mu.Unlock()
	go func() {
		defer close(w.done)
		c, nc := r.reach(w)
		opts := natsworker.Options{Limits: &timeout.Config{Idle: w.Idle, Total: w.Total, Grace: w.Grace}, Logger: slog.New(&listener{r, w}), MaxBackoff: 4 * time.Second}
		if w.Conn {
			opts.Conn = nc
		}
		work := func(ctx context.Context, m jetstream.Msg) error { return r.work(ctx, w, m) }
		if !w.Consume {
			opts.Drain = w.Drain
			w.err = natsworker.Run(ctx, c, w.Slots, work, opts)
			w.ended = time.Now()
			if errors.Is(w.err, natsworker.ErrStuck) && ctx.Err() == nil {
				r.start(number) // as is documented
			}
			return
		}
		for range w.Slots {
			cc, err := c.Consume(handler(c, work, opts), jetstream.PullMaxMessages(1))
			if err != nil {
				r.Error(err)
				continue
			}
			defer func() { cc.Stop(); <-cc.Closed() }()
		}
		<-ctx.Done()
	}()
}

// reach makes a connection, for which the server may be away.
func (r *run) reach(w *simWorker) (c jetstream.Consumer, nc *nats.Conn) {
	r.eventually("a connection", func() bool {
		var err error
		if nc == nil {
			nc, err = nats.Connect("nats://127.0.0.1", nats.SetCustomDialer(w.link), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
				nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
			if err != nil {
				nc = nil
				return false
			}
			r.Cleanup(nc.Close)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err = js.Consumer(ctx, streamName, consumerName)
		return err == nil
	})
	return c, nc
}

func (r *run) end(w *simWorker) {
	if w.stopped.IsZero() {
		w.stopped = time.Now()
		w.stop()
	}
	<-w.done
}

// happen does what an event says, and returns when it is over.
func (r *run) happen(e event) {
	number, what := e.Worker, e.What
	if what == stalls || what == restarts || what == kills {
		number = -1
	}
	blow := blow{number, what, time.Now(), time.Time{}}
	r.mu.Lock()
	r.note("%v", e)
	links := slices.Clone(r.links)
	var w *simWorker
	for _, w = range slices.Backward(r.workers) {
		if w.number == e.Worker {
			break
		}
	}
	r.mu.Unlock()
	switch what {
	case cuts:
		w.link.Cut()
		time.Sleep(e.For)
		w.link.Mend()
	case keepsIn, keepsOut:
		w.link.Hold(map[happening]simnet.Direction{keepsIn: simnet.ToClient, keepsOut: simnet.ToServer}[what])
		time.Sleep(e.For)
		w.link.Release()
	case stalls:
		for _, l := range links {
			l.Hold(simnet.ToServer, simnet.ToClient)
		}
		time.Sleep(e.For)
		for _, l := range links {
			l.Release()
		}
	case restarts:
		r.restart(e.For)
	case kills:
		r.kill(e.For, links...)
	case stops:
		w.stopped = time.Now()
		w.stop()
		r.start(e.Worker)
	}
	time.Sleep(200 * time.Millisecond) // to connect again
	blow.to = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blows = append(r.blows, blow)
}

// work is the function of all workers.
func (r *run) work(ctx context.Context, w *simWorker, m jetstream.Msg) (err error) {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	e := &execution{message: meta.Sequence.Stream, delivery: meta.NumDelivered, by: w, begun: time.Now(), beat: time.Now()}
	r.mu.Lock()
	e.act = act{End: succeeds}
	if e.message <= uint64(len(r.Messages)) { // else it is one that was published again, which a killed server has not known
		if acts := r.Messages[e.message-1].Acts; int(e.delivery) <= len(acts) {
			e.act = acts[e.delivery-1]
		}
	}
	r.executions = append(r.executions, e)
	r.note("worker %d begins %d.%d: %+v", w.number, e.message, e.delivery, e.act)
	r.mu.Unlock()
	unwatch := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.told, e.cause = time.Now(), context.Cause(ctx)
		r.note("%d.%d is told to stop: %v", e.message, e.delivery, e.cause)
	})
	defer func() {
		first := unwatch() // or it was told at this very moment
		r.mu.Lock()
		defer r.mu.Unlock()
		e.returned = time.Now()
		if first && ctx.Err() != nil {
			e.told, e.cause = time.Now(), context.Cause(ctx)
		}
		r.note("%d.%d returns %v", e.message, e.delivery, err)
	}()
	stop := ctx.Done()
	if e.Deaf {
		stop = nil
	}
	for end := e.begun.Add(e.Take); ; {
		wait := time.Until(end)
		if e.Beat > 0 {
			wait = min(wait, e.Beat)
		}
		select {
		case <-stop:
			return ctx.Err()
		case <-time.After(wait):
		}
		if !time.Now().Before(end) {
			break
		}
		heartbeat.Beat(ctx)
		r.mu.Lock()
		if e.told.IsZero() {
			e.beat = time.Now()
		}
		r.mu.Unlock()
	}
	own := func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.own = err == nil
	}
	switch e.End {
	case errs:
		return errBroken
	case panics:
		panic("oh")
	case rejects:
		return natsworker.Reject(errBroken)
	case later:
		return natsworker.After(3*time.Second, errBroken)
	case acks:
		own(m.Ack())
	case naks:
		own(m.Nak())
	}
	return nil
}

// A listener keeps what is logged of a delivery with its execution.
type listener struct {
	r *run
	w *simWorker
}

func (*listener) Enabled(context.Context, slog.Level) bool { return true }
func (l *listener) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *listener) WithGroup(string) slog.Handler          { return l }

func (l *listener) Handle(_ context.Context, rec slog.Record) error {
	var m, d uint64
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "sequence":
			m = a.Value.Uint64()
		case "delivery":
			d = a.Value.Uint64()
		}
		return true
	})
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.note("worker %d logs of %d.%d: %s", l.w.number, m, d, rec.Message)
	for _, e := range l.r.executions {
		if e.message == m && e.delivery == d && e.by == l.w {
			e.log = rec.Message
		}
	}
	return nil
}

// SPEC 13.2, guarantees 1 to 8: random runs, each judged by every rule. A seed decides a run but for which of two
// goroutines goes first at one instant, so a failing seed may have to be run a few times.
func TestSimulation(t *testing.T) {
	for seed := range harness.Seeds(t, 40) {
		s := random(seed)
		if broken, r := judge(t, s); len(broken) > 0 {
			s, broken, r = shrink(t, s, broken, r)
			text, _ := json.MarshalIndent(s, "", " ")
			t.Fatalf("%s\n%s\n%s", text, strings.Join(r.history, "\n"), strings.Join(broken, "\n"))
		}
	}
}

// judge runs a scenario, and returns what was wrong with it.
func judge(t *testing.T, s scenario) (broken []string, r *run) {
	t.Helper()
	// Time stands still in a bubble while somebody waits for a mutex, so what hangs is found by real time.
	defer time.AfterFunc(time.Minute, func() {
		text, _ := json.Marshal(s)
		panic(fmt.Sprintf("a run hangs: is a lock held?\n%s", text))
	}).Stop()
	if r = perform(t, s); t.Failed() {
		text, _ := json.Marshal(s)
		t.Fatalf("%s\n%s", text, strings.Join(r.history, "\n"))
	}
	for name, rule := range rules {
		for _, s := range rule(r) {
			broken = append(broken, name+": "+s)
		}
	}
	return broken, r
}

// shrink leaves out what does not matter for the failure.
func shrink(t *testing.T, s scenario, broken []string, r *run) (scenario, []string, *run) {
	for again := true; again; {
		again = false
		try := func(smaller scenario) {
			if b, run := judge(t, smaller); !again && len(b) > 0 {
				s, broken, r, again = smaller, b, run, true
			}
		}
		for i := 0; i < len(s.Events) && !again; i++ {
			smaller := s
			smaller.Events = slices.Delete(slices.Clone(s.Events), i, i+1)
			try(smaller)
		}
		for i := 0; i < len(s.Messages) && !again; i++ {
			smaller := s
			smaller.Messages = slices.Delete(slices.Clone(s.Messages), i, i+1)
			try(smaller)
		}
	}
	return s, broken, r
}

package natsworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

const (
	chaosMessages   = 1000
	chaosWorkers    = 4 // processes
	chaosSlots      = 4 // of each
	chaosKills      = 4
	chaosLosses     = 5
	chaosStops      = 2
	chaosLates      = 4
	chaosAckWait    = 1200 * time.Millisecond
	chaosMaxDeliver = 12
)

var chaosLimits = timeout.Config{Idle: 600 * time.Millisecond, Grace: 100 * time.Millisecond}

// A plan is what a function does in one delivery of a message. It follows from the seed, the
// message and the delivery alone.
type plan string

const (
	works   plan = "works"
	long    plan = "works for longer than AckWait"
	stalls  plan = "stalls"   // and applies its effect when it has been told to stop
	ignores plan = "is deaf"  // and applies its effect long after it has been abandoned
	errs    plan = "fails"    //
	panics  plan = "panics"   //
	rejects plan = "rejects"  // in every delivery
	poisons plan = "is toxic" // fails or panics in every delivery
)

func planFor(seed, message, delivery uint64) plan {
	switch of := rand.New(rand.NewPCG(seed, message)).IntN(100); {
	case of < 1:
		return rejects
	case of < 2:
		return poisons
	}
	switch in := rand.New(rand.NewPCG(seed^delivery<<32, message)).IntN(200); {
	case in < 6:
		return stalls
	case in < 9:
		return ignores
	case in < 17:
		return errs
	case in < 25:
		return panics
	case in < 27:
		return long
	}
	return works
}

// An entry is what a worker says to the ledger about an execution.
type entry struct {
	Op       string // begin, apply, log, stall
	Worker   int    // number of the process, each has its own
	Message  uint64
	Delivery uint64
	Plan     plan
	Text     string    // of log
	From, To time.Time // of stall
}

// A ledger is the outside world: the work that has been begun, and the effects, which are fenced.
type ledger struct {
	mu       sync.Mutex
	messages map[uint64]*account
	blows    []blow
	refused  int // effects of those who have a successor
	late     int // effects that were there already
}

// What is done to a worker can cost each of its slots a delivery for which there is no other reason, from then
// on until it works again. Worker 0 stands for all of them.
type blow struct {
	worker      int
	what        string
	begun, over time.Time
}

// watchForStalls calls stalled until the context ends, each time that this process got no processor for so
// long that it cannot have renewed a lease in time.
func watchForStalls(ctx context.Context, stalled func(from, to time.Time)) {
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
		now := time.Now()
		if now.Sub(last) > chaosAckWait/3 {
			stalled(last, now)
		}
		last = now
	}
}

type account struct {
	begun   []execution
	applied uint64 // the delivery that did, 0 is none
}

type execution struct {
	entry
	at  time.Time
	log string // what the worker has logged about the message, which is nothing if it was done
}

// The answers to apply.
const (
	applied = "applied"
	before  = "applied before"
	refused = "refused"
)

func (l *ledger) take(e entry) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Op == "stall" {
		l.blows = append(l.blows, blow{e.Worker, e.Op, e.From, e.To})
		return "ok"
	}
	a := l.messages[e.Message]
	if a == nil {
		a = new(account)
		l.messages[e.Message] = a
	}
	switch e.Op {
	case "begin":
		a.begun = append(a.begun, execution{entry: e, at: time.Now()})
	case "apply":
		for _, x := range a.begun {
			if x.Delivery > e.Delivery { // the fence
				l.refused++
				return refused
			}
		}
		if a.applied != 0 {
			l.late++
			return before
		}
		a.applied = e.Delivery
		return applied
	case "log":
		for i := range a.begun {
			if a.begun[i].Delivery == e.Delivery {
				a.begun[i].log = e.Text
			}
		}
	}
	return "ok"
}

// chaosWorker is a process that works until its standard input ends.
func chaosWorker() error {
	seed, _ := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64)
	number, _ := strconv.Atoi(os.Getenv("CHAOS_WORKER"))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	direct, err := nats.Connect(os.Getenv("CHAOS_LEDGER"))
	if err != nil {
		return err
	}
	defer direct.Close()
	tell := func(e entry) string {
		e.Worker = number
		body, _ := json.Marshal(e)
		m, err := direct.Request("ledger", body, 2*slack)
		if err != nil {
			panic(err) // the test counts on it, and ends with this process
		}
		return string(m.Data)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		watchForStalls(ctx, func(from, to time.Time) { tell(entry{Op: "stall", From: from, To: to}) })
	})
	defer watching.Wait()
	defer stop()

	nc, err := nats.Connect(os.Getenv("CHAOS_URL"), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.Timeout(slack))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	var c jetstream.Consumer
	for {
		if c, err = js.Consumer(ctx, streamName, consumerName); err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	opts := []natsworker.Option{natsworker.WithOptions(chaosLimits), natsworker.WithBackoff(20*time.Millisecond, 100*time.Millisecond),
		natsworker.WithLogger(slog.New(&teller{tell}))}
	if number%2 == 0 {
		opts = append(opts, natsworker.WithConn(nc))
	}
	return natsworker.Run(ctx, c, chaosSlots, func(ctx context.Context, m jetstream.Msg) (err error) {
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		e := entry{Message: meta.Sequence.Stream, Delivery: meta.NumDelivered}
		e.Plan = planFor(seed, e.Message, e.Delivery)
		say := func(op string) string {
			heartbeat.Beat(ctx)
			e := e
			e.Op = op
			return tell(e)
		}
		random := rand.New(rand.NewPCG(seed, e.Message<<8|e.Delivery))
		say("begin")
		switch e.Plan {
		case errs:
			return errBroken
		case panics:
			panic("chaos")
		case rejects:
			return natsworker.Reject(fmt.Errorf("message %d makes no sense", e.Message))
		case poisons:
			if e.Delivery%2 == 0 {
				panic(fmt.Sprintf("message %d is toxic", e.Message))
			}
			return fmt.Errorf("message %d is toxic", e.Message)
		case stalls:
			<-ctx.Done()
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond) // beyond the grace, or not
			say("apply")
			return nil // it does not matter any more
		case ignores:
			time.Sleep(chaosLimits.Idle + chaosLimits.Grace + 300*time.Millisecond)
			say("apply")
			return nil
		case long:
			for begun := time.Now(); time.Since(begun) < chaosAckWait*4/3; heartbeat.Beat(ctx) {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(50 * time.Millisecond):
				}
			}
		default:
			time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		}
		if say("apply") == refused {
			return errors.New("another has begun")
		}
		return nil
	}, opts...)
}

func init() { children["chaos"] = chaosWorker }

// A teller has the ledger know what is logged about messages.
type teller struct{ tell func(entry) string }

func (*teller) Enabled(context.Context, slog.Level) bool { return true }
func (t *teller) WithAttrs([]slog.Attr) slog.Handler     { return t }
func (t *teller) WithGroup(string) slog.Handler          { return t }

func (t *teller) Handle(_ context.Context, r slog.Record) error {
	e := entry{Op: "log", Text: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "sequence":
			e.Message = a.Value.Uint64()
		case "delivery":
			e.Delivery = a.Value.Uint64()
		}
		return true
	})
	if e.Message > 0 {
		t.tell(e)
	}
	return nil
}

// SPEC 13.2: 1000 messages, 4 processes, of which some are killed with SIGKILL, some stopped, and some
// lose their connection or have a slow one; functions that stall, are deaf, fail and panic. Every message is done
// or terminated with its reason, every effect is there once, and each delivery but the first
// has a reason that is known.
func TestChaos(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CHAOS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("CHAOS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = chaosAckWait; c.MaxDeliver = chaosMaxDeliver })
	heard := b.advisories()
	book := &ledger{messages: map[uint64]*account{}}
	if _, err := b.nc.Subscribe("ledger", func(m *nats.Msg) {
		var e entry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Error(err)
		}
		m.Respond([]byte(book.take(e)))
	}); err != nil {
		t.Fatal(err)
	}
	for i := range chaosMessages {
		if _, err := b.js.PublishAsync(fmt.Sprintf("jobs.%d", i+1), nil); err != nil {
			t.Fatal(err)
		}
	}
	<-b.js.PublishAsyncComplete()

	watch, unwatch := context.WithCancel(t.Context())
	defer unwatch()
	var watching sync.WaitGroup
	watching.Go(func() {
		watchForStalls(watch, func(from, to time.Time) { book.take(entry{Op: "stall", From: from, To: to}) })
	})
	type worker struct {
		number int
		proxy  *proxy
		cmd    *exec.Cmd
		stdin  io.Closer
		out    *buffer
	}
	numbers := 0
	start := func(w *worker) {
		numbers++
		w.number = numbers
		w.cmd = exec.Command(exe)
		w.cmd.Env = append(os.Environ(), modeEnv+"=chaos", fmt.Sprintf("CHAOS_SEED=%d", seed), fmt.Sprintf("CHAOS_WORKER=%d", w.number),
			"CHAOS_URL="+w.proxy.url(), "CHAOS_LEDGER="+b.server.ClientURL())
		w.out = new(buffer)
		w.cmd.Stdout, w.cmd.Stderr = w.out, w.out
		if w.stdin, err = w.cmd.StdinPipe(); err == nil {
			err = w.cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var workers []*worker
	for range chaosWorkers {
		w := &worker{proxy: newProxy(t, b.server)}
		start(w)
		workers = append(workers, w)
	}
	t.Cleanup(func() {
		for _, w := range workers {
			w.cmd.Process.Kill()
			w.cmd.Wait()
		}
	})
	stop := func(w *worker) {
		w.stdin.Close()
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("worker %d: %v\n%s", w.number, err, w.out)
		}
	}

	eventually(t, 2*slack, func() bool { book.mu.Lock(); defer book.mu.Unlock(); return len(book.messages) > 20 },
		func() string { return "the workers do not begin" })
	var todo []string
	for what, n := range map[string]int{"kill": chaosKills, "lose": chaosLosses, "stop": chaosStops, "late": chaosLates} {
		todo = append(todo, slices.Repeat([]string{what}, n)...)
	}
	slices.Sort(todo)
	random.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	var blows []blow
	for _, what := range todo {
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		w := workers[random.IntN(chaosWorkers)]
		it := blow{worker: w.number, what: what, begun: time.Now()}
		switch what {
		case "kill":
			w.cmd.Process.Kill()
			w.cmd.Wait()
			start(w)
		case "stop":
			stop(w)
			start(w)
		case "lose": // for less than AckWait or for more
			w.proxy.lose()
			time.Sleep(time.Duration(random.IntN(2)+1) * chaosAckWait * 2 / 3)
			w.proxy.find()
		case "late": // what the server sends, by less than AckWait or by more
			w.proxy.hold()
			time.Sleep(time.Duration(random.IntN(3)+1) * chaosAckWait / 2)
			w.proxy.release()
		}
		it.over = time.Now()
		blows = append(blows, it)
	}

	leftAfterBlows, _ := b.state()
	// What is left now is either done or, where a killed worker had the last delivery, beyond
	// what the server delivers.
	eventually(t, 4*slack, func() bool {
		left, pending := b.state()
		return pending == 0 && int(left) == len(heard("MAX_DELIVERIES"))
	}, func() string {
		left, pending := b.state()
		return fmt.Sprintf("%d left, %d unacknowledged, %d beyond MaxDeliver", left, pending, len(heard("MAX_DELIVERIES")))
	})
	for _, w := range workers {
		stop(w)
	}
	unwatch()
	watching.Wait()

	terms := map[uint64]advisory{}
	for _, a := range heard("MSG_TERMINATED") {
		if before, twice := terms[a.Sequence]; twice && before != a {
			t.Errorf("message %d: terminated twice: %v, %v", a.Sequence, before, a)
		}
		terms[a.Sequence] = a
	}
	given := map[uint64]bool{}
	for _, a := range heard("MAX_DELIVERIES") {
		given[a.Sequence] = true
	}
	// A blow explains what happens while it lasts and, since AckWait runs then, until that is over.
	// That something is late explains no execution that is followed by another: a message whose
	// lease has run out is not begun, and one whose lease runs out in between is logged.
	explained := func(worker int, from, to time.Time) bool {
		return slices.ContainsFunc(blows, func(b blow) bool {
			return (worker == 0 || b.worker == 0 || worker == b.worker && b.what != "late") &&
				b.begun.Before(to) && from.Before(b.over.Add(chaosAckWait))
		})
	}
	book.mu.Lock()
	defer book.mu.Unlock()
	blows = append(blows, book.blows...)
	executions, byBlow, done := 0, 0, 0
	why := map[string]int{} // redeliveries by what was logged
	for m := uint64(1); m <= chaosMessages; m++ {
		a := book.messages[m]
		if a == nil {
			t.Fatalf("message %d was never begun", m)
		}
		executions += len(a.begun)
		end, wantTerm := terms[m]
		last := a.begun[len(a.begun)-1]
		for i, x := range a.begun {
			next := time.Now()
			var number uint64
			if i+1 < len(a.begun) {
				next, number = a.begun[i+1].at, a.begun[i+1].Delivery
				if number <= x.Delivery {
					t.Errorf("message %d: delivery %d begun after %d", m, number, x.Delivery)
				}
				if gap := number - x.Delivery - 1; gap > 0 { // delivered to one that was just hit
					byBlow += int(gap)
					if !explained(0, x.at, next) {
						t.Errorf("message %d: deliveries between %d and %d were lost without a reason", m, x.Delivery, number)
					}
				}
			} else if i == 0 && x.Delivery > 1 {
				byBlow += int(x.Delivery - 1)
			}
			if number == 0 {
				continue
			}
			if x.log == "" { // its worker was killed, or the connection lost
				byBlow++
				// The server had the outcome before the worker could log it, and may have delivered again
				// before the worker was killed.
				const untilLogged = chaosAckWait / 3
				if !explained(x.Worker, x.at, next.Add(untilLogged)) {
					t.Errorf("message %d: delivery %d (%s) was followed by another without a reason", m, x.Delivery, x.Plan)
				}
			}
			if x.log == "terminated" {
				t.Errorf("message %d: delivery %d was followed by another, after it had been terminated", m, x.Delivery)
			}
			why[x.log]++
		}
		if last.log != "" && last.log != "terminated" && !given[m] {
			// Settled by this one, the answer to its acknowledgement lost, or by another delivery, of
			// which nothing is known.
			if !strings.Contains(last.log, " unconfirmed: ") && !explained(0, last.at, time.Now()) {
				t.Errorf("message %d: %q in its last delivery, %d (%s)", m, last.log, last.Delivery, last.Plan)
			}
		}
		switch plan := last.Plan; {
		case given[m]:
			// The server never had the outcome of the last delivery that it makes, which the worker says, or it
			// was hit.
			known := strings.HasPrefix(last.log, "lease lost: ") || strings.HasPrefix(last.log, "outcome unconfirmed: ")
			if last.Delivery > chaosMaxDeliver || !known && !explained(0, last.at, time.Now()) {
				t.Errorf("message %d was given up at delivery %d (%s, %q) without a reason", m, last.Delivery, last.Plan, last.log)
			}
		case plan == rejects:
			if want := fmt.Sprintf("message %d makes no sense", m); end.Reason != want {
				t.Errorf("message %d: the reason is %q, want %q", m, end.Reason, want)
			}
		case plan == poisons:
			aborted := strings.HasSuffix(end.Reason, "Tool was aborted.") && explained(last.Worker, last.at, time.Now())
			if !strings.HasPrefix(end.Reason, "delivery 12 of 12: ") || !strings.HasSuffix(end.Reason, fmt.Sprintf("message %d is toxic", m)) && !aborted {
				t.Errorf("message %d: the reason is %q", m, end.Reason)
			}
		case wantTerm:
			if last.Delivery != chaosMaxDeliver || !strings.HasPrefix(end.Reason, "delivery 12 of 12: ") {
				t.Errorf("message %d: terminated in delivery %d: %q", m, last.Delivery, end.Reason)
			}
		case a.applied == 0:
			t.Errorf("message %d is done without its effect; its last delivery is %+v", m, last)
		default:
			done++
		}
	}
	// A worker has no more messages than slots, so a blow costs no more deliveries.
	if most := len(blows) * chaosSlots; byBlow > most {
		t.Errorf("%d deliveries were lost to %d blows, want at most %d", byBlow, len(blows), most)
	}
	if book.refused+book.late == 0 {
		t.Error("no zombie has tried its effect")
	}
	t.Logf("redelivered, by what was logged: %v", why)
	t.Logf("%d executions of %d messages: %d done, %d terminated, %d beyond MaxDeliver; %d lost to %d blows; effects of zombies: %d refused, %d there before; %d messages were left after the last blow",
		executions, chaosMessages, done, len(terms), len(given), byBlow, len(blows), book.refused, book.late, leftAfterBlows)
}

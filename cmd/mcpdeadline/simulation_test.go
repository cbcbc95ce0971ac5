package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/calls"
	"github.com/tooldeadline/tooldeadline/internal/harness"
)

var simShow = flag.Bool("simulate.show", false, "show the history of each run")

// TestSimulation runs the program between a host and a server that do at random what hosts and servers do, and judges
// what has passed between them; see oracle_test.go. The seed of a run decides it, but for the order of what happens at
// one instant.
func TestSimulation(t *testing.T) {
	for seed := range harness.Seeds(t, 500) {
		p := newPlan(seed)
		var h *history
		synctest.Test(t, func(t *testing.T) { h = p.play(t) })
		wrong := p.judge(h)
		if *simShow || len(wrong) > 0 {
			t.Logf("seed %d: %q %+v\n%s", seed, p.flags(), p, h)
		}
		for _, w := range wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
	}
}

// A plan is a run: the settings of the proxy, and what the host and the server do.
type plan struct {
	Total, Idle, Grace, Ping, Keep time.Duration
	LogsCount                      bool // as signs of life
	Rude                           bool // the server answers no pings, nor what it does not know
	Starts, Falls                  time.Duration
	Deaf                           bool // to SIGTERM
	Slow                           bool // is the proxy, after it has written to a server
	Acts                           []act
	End                            time.Duration // when the host closes stdin
}

// An act is what the host sends, and what the server does for it.
type act struct {
	At     time.Duration
	What   string // call, request, cancel, ping, notify, batch
	ID     int
	Of     int  // the request that is cancelled
	Token  bool // the host asks for progress
	Server reaction
}

// A reaction is what the server does with a request, on a goroutine of its own.
type reaction struct {
	Blocks   time.Duration // first, and nothing is read meanwhile
	Busy     bool          // with the processor
	Every    time.Duration // reports progress or logs, until After
	Logs     bool
	Asks     time.Duration // the host, after that time; negative means never
	Answers  time.Duration // how long the host takes for that; negative means for ever
	After    time.Duration // it answers; negative means never
	How      string        // "", twice, error, text (another type of the id), exit, noise
	OnCancel time.Duration // how long after the cancellation it answers; negative means not at all
}

// newPlan draws a plan. Many times are such that they fall on limits, or just beside.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...time.Duration) time.Duration { return of[r.IntN(len(of))] }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	const ms, s = time.Millisecond, time.Second
	p := &plan{
		Total: pick(0, 2*s, 5*s, 20*s), Idle: pick(0, s, 3*s, 10*s), Grace: pick(0, 100*ms, s, 7*s), Ping: pick(0, 200*ms, 2*s, 10*s),
		Keep: pick(0, 500*ms, 2*s), LogsCount: chance(50), Rude: chance(20), Falls: pick(0, 0, s, 2*s-1, 3*s, time.Hour),
		Deaf: chance(30), Starts: pick(0, 0, 500*ms, 4*s),
	}
	near := func() time.Duration { // a time that has to do with a limit
		d := pick(0, p.Total, p.Idle, p.Grace, p.Ping, p.Total+p.Grace, p.Idle+p.Grace, p.Idle+p.Grace+p.Ping, calls.Settle, calls.Overdue) + pick(0, 0, -1, 1, -ms, ms, 50*ms)
		return max(d, 0)
	}
	some := func() time.Duration {
		if chance(30) {
			return near()
		}
		return time.Duration(r.Int64N(int64(8*s)))/1000*1000 + 7
	}
	never := func(percent int, d time.Duration) time.Duration {
		if chance(percent) {
			return -1
		}
		return d
	}
	at := p.Starts // hosts wait for the answer to initialize
	for id := range 2 + r.IntN(8) {
		if chance(60) {
			at += some() / 2
		}
		a := act{At: at, ID: 100 + id, What: "call", Token: chance(50)}
		a.Server = reaction{After: never(30, some()), OnCancel: never(60, some()/4), Asks: -1, Answers: -1}
		switch r.IntN(14) {
		case 0, 1:
			a.What = "request"
		case 2:
			a.What, a.Server.After = "ping", 0
		case 3:
			a.What = "notify"
		case 4:
			a.What = "batch"
		}
		switch r.IntN(14) {
		case 0:
			a.Server.Blocks, a.Server.Busy = some(), chance(40)
		case 1, 2, 3:
			a.Server.Every, a.Server.Logs = max(some()/4, 20*ms), chance(40)
		case 4:
			a.Server.Asks, a.Server.Answers = some()/4, never(20, some())
		case 5:
			a.Server.Blocks = time.Hour
		case 6, 7:
			a.Server.How = []string{"twice", "error", "text", "exit", "noise"}[r.IntN(5)]
		}
		p.Acts = append(p.Acts, a)
		if a.What != "notify" && a.What != "ping" && chance(20) {
			at += some() / 4
			p.Acts = append(p.Acts, act{At: at, What: "cancel", Of: a.ID})
		}
	}
	p.End = at + some()
	if chance(70) {
		p.End += time.Minute
	}
	p.Slow = chance(50)
	return p
}

func (p *plan) flags() []string {
	alive := "progress"
	if p.LogsCount {
		alive += ",log"
	}
	for _, a := range p.Acts {
		if a.Server.Busy {
			alive += ",work"
			break
		}
	}
	return []string{"-total", p.Total.String(), "-idle", p.Idle.String(), "-grace", p.Grace.String(), "-ping", p.Ping.String(), "-keep-alive", p.Keep.String(),
		"-alive", strings.TrimSuffix(alive, ",work"), "-declare=false", "--", "server"}
}

func (p *plan) reaction(id int) reaction {
	for _, a := range p.Acts {
		if a.ID == id {
			return a.Server
		}
	}
	return reaction{After: -1, OnCancel: -1, Asks: -1}
}

// A passed is a message that has passed.
type passed struct {
	at   time.Duration
	dir  string // to the server ("→s"), or from it ("s→"), to the host ("→h"), or from it ("h→")
	run  int
	line string
	simMessage
}

type simMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Tag       int
		RequestID json.RawMessage
		Token     json.RawMessage `json:"progressToken"`
		Data      int
		Progress  float64
		Meta      struct {
			Token  json.RawMessage                  `json:"progressToken"`
			Budget struct{ LeftMs, IdleMs float64 } `json:"io.github.tooldeadline/budget"`
		} `json:"_meta"`
	}
	Result *struct {
		Tag     int
		IsError bool
		Content []struct{ Text string }
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
	Error *struct {
		Code    int
		Message string
	}
}

// A history is what has passed, in the order in which it did, and the lives of the servers.
type history struct {
	mu    sync.Mutex
	begun time.Time
	all   []passed
	runs  []*virtual
	eof   map[int]time.Duration // when a run has seen the end of its stdin
	ended time.Duration         // of the program
	code  int
	tags  int
}

func (h *history) add(dir string, run int, line string) *passed {
	m := passed{at: time.Since(h.begun), dir: dir, run: run, line: line}
	_ = json.Unmarshal([]byte(line), &m.simMessage)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, m)
	return &m
}

func (h *history) tag() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tags++
	return h.tags
}

func (h *history) String() string {
	var b strings.Builder
	for _, m := range h.all {
		fmt.Fprintf(&b, "%14v %s %d %.300s\n", m.at, m.dir, m.run, m.line)
	}
	for _, r := range h.runs {
		fmt.Fprintf(&b, "run %d: %v to %v, EOF %v, killed %v, %v\n", r.run, r.begun.Sub(h.begun), r.ended.Sub(h.begun), h.eof[r.run], r.killed, r.end)
	}
	fmt.Fprintf(&b, "ended after %v with %d\n", h.ended, h.code)
	return b.String()
}

// play makes the run.
func (p *plan) play(t *testing.T) *history {
	h := &history{begun: time.Now(), eof: make(map[int]time.Duration)}
	vm := &virtualMachine{program: func(v *virtual) { p.serve(h, v) }, deaf: p.Deaf, slow: p.Slow}
	host := vm.host(t, p.flags()...)
	say := func(line string) {
		h.add("h→", 0, line)
		host.send(line)
	}
	host.mu.Lock()
	host.onLine = func(w wire) {
		h.add("→h", 0, w.raw)
		if w.Method != "sampling/createMessage" {
			return
		}
		var of struct{ Params struct{ Of int } }
		_ = json.Unmarshal([]byte(w.raw), &of)
		if d := p.reaction(of.Params.Of).Answers; d >= 0 {
			time.AfterFunc(d, func() {
				if time.Since(h.begun) < p.End {
					say(`{"jsonrpc":"2.0","id":` + string(w.ID) + `,"result":{}}`)
				}
			})
		}
	}
	host.mu.Unlock()
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + `}`)
	time.Sleep(p.Starts)
	synctest.Wait()
	say(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{"tag":0}}`)
	var last []string // of a batch
	for _, a := range p.Acts {
		time.Sleep(time.Until(h.begun.Add(a.At)))
		call := func(id int) string {
			meta := ""
			if a.Token {
				meta = fmt.Sprintf(`,"_meta":{"progressToken":%d}`, id)
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","tag":%d%s}}`, id, h.tag(), meta)
		}
		switch a.What {
		case "call":
			say(call(a.ID))
		case "batch":
			last = []string{call(a.ID), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","tag":%d}}`, a.ID+1000, h.tag())}
			say("[" + strings.Join(last, ",") + "]")
		case "request":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"x:y","tag":%d}}`, a.ID, h.tag()))
		case "ping":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"tag":%d}}`, a.ID, h.tag()))
		case "notify":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/x","params":{"tag":%d}}`, h.tag()))
		case "cancel":
			say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"tag":%d}}`, a.Of, h.tag()))
		}
	}
	time.Sleep(time.Until(h.begun.Add(p.End)))
	_ = host.in.Close()
	<-host.ended
	h.ended, h.code = time.Since(h.begun), host.code
	h.runs = vm.runs
	return h
}

// serve is the server.
func (p *plan) serve(h *history, v *virtual) {
	turn := make(chan struct{}, 1)
	say := func(format string, args ...any) {
		turn <- struct{}{}
		defer func() { <-turn }()
		if line := fmt.Sprintf(format, args...); !v.isDead() {
			h.add("s→", v.run, line)
			_, _ = fmt.Fprintln(v.out, line)
		}
	}
	answer := func(id json.RawMessage, how string) {
		switch how {
		case "exit":
			v.Exit(5)
		case "error":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no"}}`, id)
			return
		case "text":
			id = json.RawMessage(`"` + string(id) + `"`)
		case "noise":
			_, _ = fmt.Fprint(v.out, "Done! ")
		case "twice":
			defer say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"tag":%d}}`, id, h.tag())
		}
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"tag":%d}}`, id, h.tag())
	}
	v.Sleep(p.Starts)
	cancelled := make(map[string]chan struct{})
	lines := bufio.NewReader(v.in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		m := h.add("→s", v.run, strings.TrimSuffix(line, "\n"))
		id := m.ID
		switch n, _ := fmt.Sscan(string(id), new(int)); {
		case m.Method == "notifications/cancelled":
			if c := cancelled[string(m.Params.RequestID)]; c != nil {
				close(c)
				delete(cancelled, string(m.Params.RequestID))
			}
		case m.Method == "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, id)
		case m.Method == "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, id)
		case m.Method == "ping", m.Method == "mcpdeadline/alive":
			if !p.Rude || n == 1 {
				say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			}
		case m.Method == "tools/call", m.Method == "resources/read":
			var number int
			_, _ = fmt.Sscan(string(id), &number)
			r := p.reaction(number)
			if number >= 1000 { // the second of a batch
				r = reaction{After: time.Second, OnCancel: -1, Asks: -1}
			}
			if r.Blocks > 0 && r.Busy {
				v.Work(r.Blocks)
			} else if r.Blocks > 0 {
				v.Sleep(r.Blocks)
			}
			c := make(chan struct{})
			cancelled[string(id)] = c
			go p.react(h, v, r, number, m, c, say, answer)
		}
	}
	h.mu.Lock()
	h.eof[v.run] = time.Since(h.begun)
	h.mu.Unlock()
	v.Sleep(p.Falls)
	v.Exit(0)
}

// react is what the server does for a request.
func (p *plan) react(h *history, v *virtual, r reaction, number int, m *passed, cancelled <-chan struct{}, say func(string, ...any), answer func(json.RawMessage, string)) {
	begun := time.Now()
	// until sleeps until d after the beginning. If the request is cancelled first, it does what is done then.
	until := func(d time.Duration) {
		if d < 0 {
			d = 1000 * time.Hour
		}
		timer := time.NewTimer(time.Until(begun.Add(d)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return
		case <-v.dead:
			v.Hang()
		case <-cancelled:
		}
		if r.OnCancel < 0 {
			v.Hang()
		}
		v.Sleep(r.OnCancel)
		answer(m.ID, "")
		v.Hang()
	}
	if r.Asks >= 0 && (r.After < 0 || r.Asks < r.After) {
		until(r.Asks)
		say(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"of":%d,"tag":%d}}`, number, number, h.tag())
	}
	for n := 1; r.Every > 0 && (r.After < 0 && n < 100 || time.Duration(n)*r.Every < r.After); n++ {
		until(time.Duration(n) * r.Every)
		if r.Logs {
			say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d,"tag":%d}}`, n, h.tag())
		} else if m.Params.Meta.Token != nil {
			say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"tag":%d}}`, m.Params.Meta.Token, n, h.tag())
		}
	}
	until(r.After)
	answer(m.ID, r.How)
}

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestScenarios makes runs that are named, and judged as those of TestSimulation. What the host gets, and what becomes of
// servers, is known to the nanosecond.
func TestScenarios(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	silent := reaction{After: -1, OnCancel: -1, Asks: -1, Answers: -1}
	answers := func(after time.Duration) reaction { r := silent; r.After = after; return r }
	like := func(change func(*reaction)) reaction { r := silent; change(&r); return r }
	call := func(at time.Duration, id int, r reaction) act { return act{At: at, What: "call", ID: id, Server: r} }
	deaf := like(func(r *reaction) { r.Blocks = time.Hour })
	exits := like(func(r *reaction) { r.After, r.How = s, "exit" })
	const end = 10 * time.Minute
	for _, tc := range []struct {
		name string
		plan plan
		want []string
	}{
		// SPEC 3.1, 7.7: limits, and what is waited for after them.
		{"a call that is answered", plan{Total: 5 * s, Acts: []act{call(0, 1, answers(5*s-1))}}, []string{"4.999999999s 1 ok"}},
		{"the total", plan{Total: 5 * s, Grace: 7 * s, Acts: []act{call(0, 1, silent)}}, []string{"5.25s 1 total 124"}},
		{"the idle limit", plan{Idle: 3 * s, Grace: 7 * s, Acts: []act{call(0, 1, silent)}}, []string{"3.25s 1 idle 124"}},
		{"no grace", plan{Idle: 3 * s, Acts: []act{call(0, 1, silent)}}, []string{"3s 1 idle 124"}},
		{"a short grace", plan{Idle: 3 * s, Grace: 100 * ms, Acts: []act{call(0, 1, silent)}}, []string{"3.09s 1 idle 124"}},
		{"no limits", plan{Acts: []act{call(0, 1, silent)}}, []string{"10m0s 1 aborted 130"}},
		{"progress up to the total", plan{Total: 10 * s, Idle: s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Every = s - 1 }))}}, []string{"10.25s 1 total 124"}},
		{"progress, and then none", plan{Total: 20 * s, Idle: 3 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Every, r.After = 2*s, 19*s }))}}, []string{"19s 1 ok"}},
		{"logs that count", plan{Idle: s, Grace: s, LogsCount: true, Acts: []act{call(0, 1, like(func(r *reaction) { r.Every, r.Logs, r.After = s-1, true, 5*s }))}}, []string{"5s 1 ok"}},
		{"logs that do not", plan{Idle: s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Every, r.Logs, r.After = s/2, true, 5*s }))}}, []string{"1.25s 1 idle 124"}},
		{"logs of another call", plan{Idle: s, Grace: s, LogsCount: true, Acts: []act{call(0, 1, answers(4*s)), call(0, 2, like(func(r *reaction) { r.Every, r.Logs, r.After = s-1, true, 5*s }))}}, []string{"4s 1 ok", "5s 2 ok"}},
		{"what it has when it is cancelled", plan{Total: 5 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.OnCancel = 200 * ms }))}}, []string{"5.2s 1 total 124"}},
		{"what comes too late", plan{Total: 5 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.OnCancel = 300 * ms }))}}, []string{"5.25s 1 total 124"}},
		{"a deaf server is not waited for after the total", plan{Total: 2 * s, Grace: 30 * s, Ping: 30 * s, Acts: []act{call(0, 1, deaf)}}, []string{"3s 1 total 124", "1m2s run 1: killed: it answered neither a cancelled call nor a ping for 30s"}},
		{"the grace ends with the total", plan{Idle: s, Total: 3 * s, Grace: 30 * s, Ping: 30 * s, Acts: []act{call(0, 1, deaf)}}, []string{"3s 1 idle 124", "1m1s run 1: killed: it answered neither a cancelled call nor a ping for 30s"}},
		{"a sign of life that comes late does not lengthen the wait", plan{Total: 5 * s, Grace: s, Acts: []act{call(0, 1, silent), call(0, 2, like(func(r *reaction) { r.Blocks = 5*s + 850*ms })), call(s, 3, silent)}},
			[]string{"5.9s 1 total 124", "5.9s 2 total 124", "6.25s 3 total 124"}},
		// SPEC 4.6: questions.
		{"a question holds the idle check", plan{Idle: 3 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Asks, r.Answers, r.After = s, 20*s, 23*s }))}}, []string{"23s 1 ok"}},
		{"and no longer than its answer", plan{Idle: 3 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Asks, r.Answers, r.After = s, 20*s, 25*s }))}}, []string{"24.25s 1 idle 124"}},
		{"a question that nobody answers", plan{Idle: 3 * s, Total: 20 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Asks, r.After = s, 25*s }))}}, []string{"20.25s 1 total 124"}},
		// SPEC 7.8: cancelling.
		{"the host cancels", plan{Total: 20 * s, Grace: s, Acts: []act{call(0, 1, like(func(r *reaction) { r.OnCancel = 0 })), {At: s, What: "cancel", Of: 1}}}, nil},
		{"the host cancels a deaf server's call", plan{Total: 20 * s, Grace: s, Ping: 2 * s, Acts: []act{call(0, 1, deaf), {At: s, What: "cancel", Of: 1}}}, []string{"4s run 1: killed: it answered neither a cancelled call nor a ping for 2s"}},
		// SPEC 8.11: answers.
		{"an answer twice", plan{Acts: []act{call(0, 1, like(func(r *reaction) { r.After, r.How = s, "twice" }))}}, []string{"1s 1 ok"}},
		{"an id of another type", plan{Acts: []act{call(0, 1, like(func(r *reaction) { r.After, r.How = s, "text" }))}}, []string{"1s 1 ok"}},
		{"an error", plan{Acts: []act{call(0, 1, like(func(r *reaction) { r.After, r.How = s, "error" }))}}, []string{"1s 1 error no"}},
		{"text before an answer", plan{Acts: []act{call(0, 1, like(func(r *reaction) { r.After, r.How = s, "noise" }))}}, []string{"1s 1 ok"}}, // SPEC 16.3
		{"a batch", plan{Total: 20 * s, Acts: []act{{What: "batch", ID: 3, Server: answers(5 * s)}}}, []string{"5s 3 ok", "5s 1003 ok"}},       // SPEC 16.8
		{"a batch, and a limit", plan{Total: 2 * s, Acts: []act{{What: "batch", ID: 3, Server: silent}}}, []string{"2s 3 total 124", "2s 1003 ok"}},
		// SPEC 16.8: other requests.
		{"a request that is no call", plan{Total: 2 * s, Idle: s, Acts: []act{{What: "request", ID: 1, Server: answers(30*s - 1)}, {What: "request", ID: 2, Server: silent}}}, []string{"29.999999999s 1 ok", "30s 2 error resources/read: Request exceeded wall-clock limit of 30s. If the server may take longer, raise the client's limit."}},
		// SPEC 16.4: what is dead, and what waits meanwhile.
		{"a deaf server", plan{Total: 2 * s, Grace: s, Ping: 2 * s, Acts: []act{call(0, 1, deaf), call(s, 2, answers(s)), call(4500*ms, 3, answers(500*ms))}},
			[]string{"2.9s 1 total 124", "3.9s 2 total 124", "5s run 1: killed: it answered neither a cancelled call nor a ping for 2s", "5.5s 3 ok"}},
		{"a server that is never killed", plan{Total: 2 * s, Grace: s, Acts: []act{call(0, 1, deaf)}}, []string{"2.9s 1 total 124", "10m2s run 1: signal: terminated"}},
		{"a server that knows no ping", plan{Total: 2 * s, Grace: 7 * s, Ping: 200 * ms, Rude: true, Acts: []act{call(0, 1, silent), call(2500*ms, 2, answers(ms))}}, []string{"3s 1 total 124", "3.001s 2 ok"}},
		{"a server that computes", plan{Total: 20 * s, Idle: s, Grace: s, Ping: 2 * s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Blocks, r.Busy = time.Minute, true })), call(50*s, 2, answers(11*s)), call(59500*ms, 3, answers(400*ms))}},
			[]string{"1.9s 1 idle 124", "51s 2 idle 124", "1m0.4s 3 ok"}},
		{"a server that computes for too long", plan{Total: 20 * s, Idle: s, Grace: s, Ping: 10 * s, Acts: []act{call(0, 1, like(func(r *reaction) { r.Blocks, r.Busy = 9*time.Minute, true }))}},
			[]string{"1.9s 1 idle 124", "2m2s run 1: killed: it answered neither a cancelled call nor a ping for 2m0s"}},
		// The end of a server.
		{"a server that ends", plan{Total: 20 * s, Starts: 4 * s, Acts: []act{call(4*s, 1, exits), call(4*s, 2, silent), call(6*s, 3, answers(s))}},
			[]string{"5s 1 lost exit status 5", "5s 2 lost exit status 5", "5s run 1: exit status 5", "10s 3 ok"}},
		{"what comes meanwhile stays in order", plan{Total: 20 * s, Starts: 4 * s, Acts: []act{call(4*s, 1, exits), call(6*s, 2, answers(s)), {At: 7 * s, What: "notify", ID: 3}}},
			[]string{"5s 1 lost exit status 5", "5s run 1: exit status 5", "10s 2 ok"}},
		{"and again", plan{Total: 20 * s, Acts: []act{call(0, 1, exits), call(2*s, 2, exits), call(4*s, 3, exits), call(5500*ms, 4, answers(s))}},
			[]string{"1s 1 lost exit status 5", "1s run 1: exit status 5", "3s 2 lost exit status 5", "3s run 2: exit status 5", "5s 3 lost exit status 5", "5s run 3: exit status 5", "8s 4 ok"}},
		// The end of the host.
		{"a server that takes 2 s to end", plan{Falls: 2*s - 1}, []string{"10m1.999999999s run 1: <nil>"}},
		{"a server that takes longer", plan{Falls: 3 * s}, []string{"10m2s run 1: signal: terminated"}},
		{"a server that does not listen", plan{Falls: 6 * s, Deaf: true}, []string{"10m5s run 1: context canceled"}},
		{"a server that is starting again", plan{Starts: 4 * s, Acts: []act{call(end-2*s, 1, exits)}}, []string{"9m59s 1 lost exit status 5", "9m59s run 1: exit status 5", "10m2s run 2: signal: terminated"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &tc.plan
			for i := range p.Acts { // 1 is that of initialize
				if a := &p.Acts[i]; a.What == "cancel" {
					a.Of += 10
				} else {
					a.ID += 10
				}
			}
			p.End = end
			var h *history
			synctest.Test(t, func(t *testing.T) { h = p.play(t) })
			for _, w := range p.judge(h) {
				t.Error(w)
			}
			got := h.summary(end)
			slices.Sort(got)
			slices.Sort(tc.want)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if t.Failed() {
				t.Logf("%s", h)
			}
		})
	}
}

// summary returns the answers that the host has got, and how servers have ended, but for one that ends well at the end.
func (h *history) summary(end time.Duration) (all []string) {
	left := h.runs
	ends := func(before time.Duration) {
		for len(left) > 0 && left[0].ended.Sub(h.begun) < before {
			if at := left[0].ended.Sub(h.begun); at != end || left[0].end != nil {
				all = append(all, fmt.Sprintf("%v run %d: %v", at, left[0].run, left[0].end))
			}
			left = left[1:]
		}
	}
	for _, m := range h.all {
		if m.dir != "→h" || string(m.ID) == "1" {
			continue
		}
		items := []json.RawMessage{json.RawMessage(m.line)}
		if strings.HasPrefix(m.line, "[") {
			_ = json.Unmarshal([]byte(m.line), &items)
		}
		ends(m.at)
		for _, item := range items {
			var w wire
			if _ = json.Unmarshal(item, &w); w.Method != "" {
				continue
			}
			id := 0
			_, _ = fmt.Sscan(string(w.ID), &id)
			what := w.outcome()
			switch {
			case w.Error != nil:
				what = "error " + w.Error.Message
			case what == "" && w.Result.IsError:
				what, _, _ = strings.Cut(strings.Replace(w.text(), "the server ended:", "lost", 1), "\n")
			case what == "":
				what = "ok"
			}
			all = append(all, fmt.Sprintf("%v %d %s", m.at, id-10, what))
		}
	}
	ends(forever)
	return all
}

// Calls are answered that come at the very moment at which the host closes stdin. One session in 40 shows what goes wrong
// where they join the shutdown too late.
func TestCallsAtTheEnd(t *testing.T) { // SPEC 3.11
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			h := connect(t).initialized()
			h.start("1", "hang", `{}`, "")
			h.start("2", "hang", `{}`, "")
			_ = h.in.Close()
			<-h.ended
			if got := h.got(`"isError":true`); len(got) != 2 {
				t.Errorf("%q", got)
			}
		})
	}
}

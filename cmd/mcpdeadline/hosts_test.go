package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/hosts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A scene is a host in front of the proxy whose model calls a slow tool, and follows the instructions for the result.
type scene struct {
	Flags  []string
	Client string // what the host says at initialize, as JSON
	hosts.Host
	Token bool          // the host asks for progress
	Takes time.Duration // for the tool
	Every time.Duration // between two reports of the tool; 0 means none
	Meta  []string      // of the call, beside the token
}

// A view is what the host and its model have seen.
type view struct {
	Text  string        // of the result
	Lost  bool          // the host has given up
	First time.Duration // until the first answer
	Waits int           // calls of the tool that waits
	Tools string        // the list
	Log   string
}

func initializeOf(client, version string) string {
	return fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":%q}}`, client, version)
}

// play is called in a bubble.
func (s *scene) play(t *testing.T) (v view) {
	h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		begun := time.Now()
		go func() {
			for n := 1; s.Every > 0 && time.Duration(n)*s.Every < s.Takes; n++ {
				p.Sleep(s.Every)
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.Fields().Meta.ProgressToken, n))
			}
			p.Sleep(time.Until(begun.Add(s.Takes)))
			p.answer(m, textResult("done", ""))
		}()
		return true
	}, append(s.Flags, "-alive", "progress")...)
	h.answered(`"init"`, "initialize", s.Client)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	v.Tools = h.answered(`"list"`, "tools/list", `{}`).raw
	news := make(chan struct{}, 1000)
	h.mu.Lock()
	h.onLine = func(w wire) {
		if w.Method == "notifications/progress" {
			news <- struct{}{}
		}
	}
	h.mu.Unlock()
	begun := time.Now()
	w, answered := s.call(h, "1", "a", `{}`, news)
	for v.First = time.Since(begun); answered && v.Waits < 1000; v.Waits++ {
		var c struct{ ID string }
		if json.Unmarshal(w.Result.Meta["io.github.tooldeadline/continuation"], &c) != nil || c.ID == "" {
			v.Text = w.text()
			break
		}
		_, said, _ := strings.Cut(w.text(), "Call ")
		tool, _, _ := strings.Cut(said, " ")
		w, answered = s.call(h, fmt.Sprint(2+v.Waits), tool, `{"id":"`+c.ID+`"}`, news)
	}
	v.Lost = !answered
	v.Log = h.stderr()
	return v
}

// call calls a tool, and gives up as the host does.
func (s *scene) call(h *client, id, tool, args string, news <-chan struct{}) (wire, bool) {
	meta := s.Meta
	if s.Token {
		meta = append(meta[:len(meta):len(meta)], `"progressToken":`+id)
	}
	c := h.ask(id, "tools/call", `{"name":"`+tool+`","arguments":`+args+`,"_meta":{`+strings.Join(meta, ",")+`}}`)
	never := 10_000 * time.Hour
	limit := func(d time.Duration) *time.Timer {
		if d == 0 {
			d = never
		}
		return time.NewTimer(d)
	}
	total, idle := limit(s.Limit), limit(s.Idle)
	defer total.Stop()
	defer idle.Stop()
	for {
		select {
		case w := <-c:
			return w, true
		case <-news:
			if s.Idle > 0 {
				idle.Reset(s.Idle)
			}
			if s.Renewed {
				total.Reset(s.Limit)
			}
			continue
		case <-total.C:
		case <-idle.C:
		}
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		return wire{}, false
	}
}

// waited reports whether the host would have waited for the call without the proxy.
func (s *scene) waited() bool {
	gap := s.Takes
	if s.Every > 0 && s.Token {
		gap = min(gap, s.Every)
	}
	switch {
	case s.Renewed:
		return gap < s.Limit
	case s.Limit > 0:
		return s.Takes < s.Limit && (s.Idle == 0 || gap < s.Idle)
	}
	return s.Idle == 0 || gap < s.Idle
}

// SPEC 18.4, 18.5: what a host would cut that is known, or that says how long it waits, is continued, and nothing is stopped that it would have waited for, or that
// shows signs of life.
func TestKnownHosts(t *testing.T) {
	for seed := range harness.Seeds(t, 400) {
		s, kind := newScene(seed)
		var v view
		synctest.Test(t, func(t *testing.T) { v = s.play(t) })
		wrong := s.judge(kind, v)
		for _, w := range wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
		if len(wrong) > 0 {
			t.Logf("%s: %+v\nfirst answer after %v, %d waits, lost: %v, %q\n%s", kind, s, v.First, v.Waits, v.Lost, v.Text, v.Log)
		}
	}
}

func newScene(seed uint64) (s *scene, kind string) {
	r := rand.New(rand.NewPCG(seed, 2))
	pick := func(of ...time.Duration) time.Duration { return of[r.IntN(len(of))] }
	var known []hosts.Host
	for _, h := range hosts.All() {
		if h.Client != "" {
			known = append(known, h)
		}
	}
	s = &scene{Host: known[r.IntN(len(known))], Token: r.IntN(2) == 0}
	s.Token = s.Token || s.Renewed || s.Idle > 0
	client := strings.Replace(s.Host.Client, "*", "files", 1)
	switch kind = []string{"recognised", "recognised", "recognised", "named", "given", "soft", "never", "none", "unknown", "budget", "budget"}[r.IntN(11)]; kind {
	case "named":
		s.Flags, client = []string{"-host", s.Name}, "t"
	case "given":
		s.Limit, s.Idle = pick(7*time.Second, 20*time.Minute, 2*time.Hour), 0
		s.Token = s.Token || s.Renewed
		s.Flags = []string{"-host", fmt.Sprintf("%s=%v", s.Name, s.Limit)}
	case "soft":
		s.Flags = []string{"-soft", "20s"}
	case "never":
		s.Flags = []string{"-soft", "0"}
	case "none":
		s.Flags = []string{"-host", "none"}
	case "unknown":
		client = "t"
	case "budget": // another host with the same limits, which says what they are
		left, idle := s.Limit, s.Idle
		if s.Renewed {
			left, idle = 0, s.Limit
		}
		client, s.Flags = "t", []string{"-soft", "1h", "-total", "3h", "-idle", "1h"}
		s.Meta = []string{fmt.Sprintf(`"io.github.tooldeadline/budget":{"leftMs":%d,"idleMs":%d}`, left.Milliseconds(), idle.Milliseconds())}
	}
	s.Client = initializeOf(client, "1")
	waits := max(s.Limit, s.Idle, time.Minute)
	s.Takes = max(waits+pick(0, 0, -margin(s.Limit), 6*time.Second, timeout.Default().Idle, 15*time.Minute, -waits/2, -waits)+pick(-1, 1, time.Second, -time.Second), time.Millisecond)
	s.Every = pick(0, 0, s.Takes/3+1, 5*time.Second, 49*time.Second, timeout.Default().Idle+time.Second)
	return s, kind
}

func margin(limit time.Duration) time.Duration { return min(limit/6, 10*time.Second) }

// judge has the rules.
func (s *scene) judge(kind string, v view) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	recognised := strings.Count(v.Log, "host recognised")
	if want := map[string]int{"recognised": 1, "soft": 1, "never": 1}[kind]; recognised != want {
		say("the log says %d times which host it is, want %d", recognised, want)
	}
	if kind == "none" || kind == "unknown" {
		if strings.Contains(v.Tools, "wait_for_result") || v.Waits > 0 {
			say("a call of a host that is not known was continued: %s", v.Tools)
		}
		return wrong
	}
	if v.Lost && (kind != "never" || s.waited()) {
		say("the host has given up")
	}
	done := v.Text == "done"
	if s.waited() && !done {
		say("the host would have waited for a call that was stopped: %q", v.Text)
	}
	if v.Lost {
		return wrong
	}
	within := s.Limit - margin(s.Limit)
	if s.Limit == 0 || s.Renewed || kind == "never" {
		within = forever
	}
	if kind == "soft" {
		within = 20 * time.Second
	}
	silence, total := max(s.Limit, s.Idle)+timeout.Default().Idle, max(timeout.Default().Total, s.Limit)
	if kind == "budget" {
		silence, total = time.Hour, 3*time.Hour
		bears := s.Idle
		if s.Renewed {
			bears = s.Limit
		}
		if bears -= margin(bears); bears > 0 && (s.Every == 0 || s.Every > bears) {
			within = min(within, bears)
		}
	}
	if s.Takes < within && v.Waits > 0 {
		say("the call was continued, though the host would have got its answer")
	}
	if truncated := within.Truncate(100 * time.Millisecond); s.Takes > within && v.First != truncated && done {
		say("first answered after %v, want %v", v.First, truncated)
	}
	// What shows a sign of life within the preset's limit after the host would have given up is alive.
	alive := s.Takes < silence || s.Every > 0 && s.Every < silence
	if alive && s.Takes < total && !done {
		say("a call that is alive was stopped: %q", v.Text)
	}
	if !done && !strings.Contains(v.Text, "idle timeout") && !strings.Contains(v.Text, "wall-clock limit") {
		say("the model was told %q", v.Text)
	}
	return wrong
}

// A host that is known need not wait for the answer to its initialize request.
func TestCallBeforeInitialized(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		h := connectScript(t, func(p *virtual, m *jsonrpc.Message) bool {
			return m.Method == "initialize" || m.Method == "tools/call"
		})
		begun := time.Now()
		h.ask(`"init"`, "initialize", initializeOf("@cline/core", "0.0.0"))
		if w := h.call("1", "a", `{}`); !strings.HasPrefix(w.text(), "Still running after 50s") || time.Since(begun) != 50*time.Second {
			t.Error(time.Since(begun), w.raw)
		}
	})
}

// SPEC 18.5: each host of which there is a record is known by what it says at initialize, and a silent call that is longer
// than its limit arrives.
func TestRecordedHosts(t *testing.T) {
	records, err := filepath.Glob("../../interop/hosts/records/*.json")
	if err != nil || len(records) == 0 {
		t.Fatal(err, "no records")
	}
	for _, file := range records {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Results []struct {
				Token  bool
				Client *struct{ Name, Version, Protocol string }
			}
		}
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		for _, r := range record.Results {
			if r.Client == nil {
				continue
			}
			bubble(t, filepath.Base(file), func(t *testing.T) {
				h, known := hosts.Find(r.Client.Name)
				if !known {
					t.Fatalf("%+v is not known", r.Client)
				}
				s := &scene{Host: h, Token: r.Token, Takes: max(h.Limit, time.Minute) + 6*time.Second, Client: initializeOf(r.Client.Name, r.Client.Version)}
				v := s.play(t)
				if v.Text != "done" || v.Waits > 0 != (h.Limit > 0 && !h.Renewed) {
					t.Errorf("%+v", v)
				}
				if want := `msg="host recognised" host=` + h.Name + " "; strings.Count(v.Log, want) != 1 {
					t.Errorf("%q, want %q", v.Log, want)
				}
			})
			break
		}
	}
}

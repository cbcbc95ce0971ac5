package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
	"github.com/tooldeadline/tooldeadline/internal/harness"
)

var sessionsShow = flag.Bool("sessions.show", false, "show what TestRandomSessions has seen")

// SPEC 16.8. Whenever a server forgets its sessions, refuses to begin one, takes long or breaks off, and whenever the
// host cancels, begins another session or leaves: each request gets one answer in time, no call runs twice, none is sent
// again once the host has cancelled it, and each session is ended at the server. What they do comes from a seed.
func TestRandomSessions(t *testing.T) {
	for seed := range harness.Seeds(t, 100) {
		synctest.Test(t, func(t *testing.T) { randomSessions(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomSessions(t *testing.T, seed uint64) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 3))
	chance := func(percent int) bool { mu.Lock(); defer mu.Unlock(); return r.IntN(100) < percent }
	begun := time.Now()
	var log []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, fmt.Sprintf("%v ", time.Since(begun))+fmt.Sprintf(format, args...))
	}
	wait := func(ctx context.Context, longest time.Duration) bool {
		mu.Lock()
		d := time.Duration(r.Int64N(int64(longest)))
		mu.Unlock()
		return pause(ctx, d)
	}
	unknown := [...]http.HandlerFunc{
		replies(404, ""), replies(404, ""), replies(400, "Invalid session ID"), replies(410, ""), replies(401, ""),
	}[r.IntN(5)]
	slow, streams, odd := chance(50), chance(50), chance(30)
	total := time.Duration(r.IntN(8)+2) * time.Second
	var left time.Time // when the host has left
	sessions, known, late := 0, make(map[string]bool), make(map[string]bool)
	posts, runs, cancelled, sent := 0, make(map[string]int), make(map[string]time.Time), make(map[string]time.Time)
	h := connectURL(t, func(w http.ResponseWriter, req *http.Request) {
		m, id := received(req), req.Header.Get("Mcp-Session-Id")
		note("%s %s: %s %s", req.Method, id, m.Method, m.ID)
		mu.Lock()
		if posts++; posts > 3000 {
			mu.Unlock()
			<-req.Context().Done()
			return
		}
		if m.Method == "tools/call" {
			sent[string(m.ID)] = time.Now()
		}
		mu.Unlock()
		is := func() bool { mu.Lock(); defer mu.Unlock(); return known[id] }
		if req.Method == http.MethodDelete {
			mu.Lock()
			delete(known, id)
			mu.Unlock()
			return
		}
		if slow && chance(40) && !wait(req.Context(), 3*time.Second) {
			return
		}
		if m.Method == "initialize" {
			if odd && chance(30) {
				[...]http.HandlerFunc{
					replies(503, "later"), replies(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`, "Mcp-Session-Id", "none"),
					func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
				}[rand.IntN(3)](w, req)
				return
			}
			mu.Lock()
			sessions++
			id = fmt.Sprint("s", sessions)
			known[id] = true
			late[id] = !left.IsZero()
			mu.Unlock()
			if req.Context().Err() != nil {
				mu.Lock()
				late[id] = true
				mu.Unlock()
			}
			note("begins %s", id)
			begins(w, req, m, id)
			return
		}
		if !is() {
			note("refuses %s", m.ID)
			unknown(w, req)
			return
		}
		if req.Method == http.MethodGet && streams {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			for is() && pause(req.Context(), 100*time.Millisecond) {
			}
			return
		}
		if begins(w, req, m, id) {
			return
		}
		if m.Method == "tools/call" {
			mu.Lock()
			runs[string(m.ID)]++
			mu.Unlock()
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
		events := chance(50)
		if events {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			answer = "data: " + answer + "\n\n"
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		if chance(30) && !wait(req.Context(), 12*time.Second) || odd && chance(10) {
			return
		}
		_, _ = io.WriteString(w, answer)
	}, "-total", total.String(), "-idle", "0", "-grace", "1s", "-keep-alive", "0")
	h.answered(`"init"`, "initialize", initialize)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	answers, inits := make(map[string]<-chan wire), 0
	for i := range 40 {
		id := fmt.Sprint(100 + i)
		switch {
		case chance(70):
			answers[id] = h.ask(id, "tools/call", `{"name":"a"}`)
		case chance(30):
			answers[id] = h.ask(id, "logging/setLevel", `{"level":"info"}`)
		case chance(30):
			answers[id] = h.ask(id, "tools/list", `{}`)
		case chance(30):
			h.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		case chance(30) && inits < 3:
			inits++
			answers[id] = h.ask(id, "initialize", initialize)
			h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		switch {
		case chance(10):
			mu.Lock()
			clear(known)
			mu.Unlock()
			note("forgets")
		case chance(15) && answers[id] != nil:
			wait(t.Context(), time.Second)
			mu.Lock()
			cancelled[id] = time.Now()
			mu.Unlock()
			note("cancels %s", id)
			h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
		if chance(40) {
			wait(t.Context(), 3*time.Second)
		}
	}
	if !chance(30) {
		time.Sleep(2 * time.Minute)
	}
	mu.Lock()
	left = time.Now()
	mu.Unlock()
	note("leaves")
	_ = h.in.Close()
	<-h.ended
	if took := time.Since(left); took > server.CloseLimit+time.Second {
		t.Errorf("the end took %v", took)
	}
	note("ended")
	time.Sleep(10 * time.Second)
	mu.Lock()
	defer mu.Unlock()
	counts := make(map[string]int)
	for _, line := range h.got(`"id":`) {
		if m := parsed(line); m.Method == "" {
			counts[string(m.ID)]++
		}
	}
	for id := range answers {
		at, is := cancelled[id]
		if n := counts[id]; n > 1 || n == 0 && !is {
			t.Errorf("%d answers to %s", n, id)
		}
		if runs[id] > 1 {
			t.Errorf("%s ran %d times", id, runs[id])
		}
		if is && sent[id].After(at) {
			t.Errorf("%s was sent at %v, although it was cancelled at %v", id, sent[id].Sub(begun), at.Sub(begun))
		}
	}
	for id := range known {
		if !late[id] {
			t.Errorf("%s is left", id)
		}
	}
	if sessions > 40 || posts > 1000 {
		t.Errorf("%d sessions, %d posts", sessions, posts)
	}
	if *sessionsShow || t.Failed() {
		t.Logf("unknown, slow %v, streams %v, odd %v, total %v, %d sessions, %d posts\n%s\n%s", slow, streams, odd, total, sessions, posts, strings.Join(log, "\n"), strings.Join(h.lines, "\n"))
	}
}

func parsed(line string) (w wire) {
	_ = json.Unmarshal([]byte(line), &w)
	return w
}

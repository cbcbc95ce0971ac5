package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var urlRuns = flag.Int("url-runs", 200, "how many runs TestRandomServers makes")

// SPEC 8.11. Whatever servers send, and in whatever order, each request gets one answer soon after its exchange has
// ended, and no result of another one: neither of a request that the host has cancelled, nor of one that was sent
// again. What servers do comes from a seed.
func TestRandomServers(t *testing.T) {
	seed := rand.Uint64()
	for run := range *urlRuns {
		synctest.Test(t, func(t *testing.T) { randomServer(t, seed, uint64(run)) })
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, run)
		}
	}
}

func randomServer(t *testing.T, seed, run uint64) {
	const longest = 3 * time.Second // that the server takes for a part of an answer
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, run))
	pick := func(of ...string) string { mu.Lock(); defer mu.Unlock(); return of[r.IntN(len(of))] }
	chance := func(percent int) bool { mu.Lock(); defer mu.Unlock(); return r.IntN(100) < percent }
	wait := func(ctx context.Context) {
		mu.Lock()
		d := time.Duration(r.Int64N(int64(longest)))
		mu.Unlock()
		pause(ctx, d)
	}
	sessions, known := 0, make(map[string]bool)
	h := connectURL(t, func(w http.ResponseWriter, req *http.Request) {
		m, session := received(req), req.Header.Get("Mcp-Session-Id")
		mu.Lock()
		if m.Method == "initialize" {
			sessions++
			session = fmt.Sprint(sessions)
			known[session] = true
		}
		ok := known[session]
		mu.Unlock()
		if ok && begins(w, req, m, session) {
			return
		}
		if chance(50) {
			wait(req.Context())
		}
		own := fmt.Sprintf(`{"of":%s}`, m.ID)
		id := pick(string(m.ID), string(m.ID), `"`+string(m.ID)+`"`, `""`, `null`, `"server-error"`, `0`, `-5`, `1e400`)
		message := pick(
			`{"jsonrpc":"2.0","id":`+id+`,"result":`+own+`}`, `{"jsonrpc":"2.0","id":`+id+`,"result":`+own+`}`,
			`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"no"}}`, `{"jsonrpc":"2.0","id":`+id+`}`,
			`{"jsonrpc":"2.0","result":`+own+`}`, `[{"jsonrpc":"2.0","id":`+id+`,"result":`+own+`}]`, `{"error":"no"}`, `{"id":9,"type":"ping"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, ``, `{"jsonrpc":`, `<p>`, `[]`, `null`)
		if !ok {
			message = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}`
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(map[string]int{"4": 404, "0": 400, "5": 500}[pick("4", "0", "5")])
			_, _ = io.WriteString(w, message)
			return
		}
		events := chance(50)
		w.Header().Set("Content-Type", pick("application/json", "text/html", map[bool]string{true: "text/event-stream", false: "application/json"}[events]))
		if chance(10) {
			w.Header().Set("Content-Length", "5000") // more than will come
		}
		w.WriteHeader(map[string]int{"200": 200, "202": 202, "400": 400, "403": 403, "500": 500}[pick("200", "200", "200", "202", "400", "403", "500")])
		if !events {
			_, _ = io.WriteString(w, message)
			return
		}
		for range 1 + len(pick("", "a", "bc")) {
			_, _ = io.WriteString(w, pick("", "\ufeff", ": x\n\n", "event: ping\ndata: {}\n\n")+"data: "+message+pick("\n\n", "\r\n\r\n", "\n"))
			_ = http.NewResponseController(w).Flush()
			if chance(30) {
				wait(req.Context())
			}
		}
	})
	h.initialized()
	const requests = 40
	answers := make(map[string]<-chan wire)
	for i := range requests {
		id := fmt.Sprint(100 + i)
		answers[id] = h.ask(id, pick("tools/call", "tools/list", "resources/read"), `{"name":"a"}`)
		switch {
		case chance(5):
			mu.Lock()
			clear(known)
			mu.Unlock()
		case chance(10):
			h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			delete(answers, id)
		case chance(50):
			wait(t.Context())
		}
	}
	for id, answer := range answers {
		select {
		case m := <-answer:
			var got struct{ Result struct{ Of json.Number } }
			if json.Unmarshal([]byte(m.raw), &got) != nil || string(m.ID) != id || got.Result.Of != "" && got.Result.Of.String() != id {
				t.Errorf("%s got %s", id, m.raw)
			}
		case <-time.After(10 * longest):
			t.Errorf("%s is not answered\n%s", id, h.stderr())
		}
	}
	counts := make(map[string]int)
	for _, line := range h.got("") {
		var m struct {
			ID     json.Number
			Method string
		}
		if _ = json.Unmarshal([]byte(line), &m); m.Method == "" {
			if counts[m.ID.String()]++; counts[m.ID.String()] > 1 {
				t.Errorf("one more answer: %s", line)
			}
		}
	}
}

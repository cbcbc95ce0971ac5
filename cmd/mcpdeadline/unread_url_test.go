package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/remote"
)

// unread serves a session: it does not read large messages, and answers the others.
func unread(over <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 64<<10 {
			<-over
			return
		}
		if m := received(r); !begins(w, r, m, "s") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
		}
	}
}

func connectUnread(t *testing.T, flags ...string) *client {
	over := make(chan struct{})
	t.Cleanup(func() { time.Sleep(time.Second) }) // for which package http keeps a connection that it closes
	h := connectURL(t, unread(over), append(flags, "-idle", "0", "-grace", "0s", "-keep-alive", "0")...)
	t.Cleanup(func() { close(over) })
	return h.initialized()
}

// SPEC 16.8: a server at a URL that does not read a request holds up neither its end nor for long the others, and
// the host waits only while more than the bound is queued.
func TestURLServerThatDoesNotRead(t *testing.T) {
	const many = 3000 // more than any count that could be a bound
	large := `{"name":"t","arguments":{"text":"` + strings.Repeat("x", 64<<10) + `"}}`
	ended := func(t *testing.T, begun time.Time, answer <-chan wire, name string, want time.Duration, text string) {
		t.Helper()
		m := <-answer
		if took := time.Since(begun); took != want || !strings.Contains(m.raw, text) {
			t.Errorf("%s after %v: %.300s", name, took, m.raw)
		}
	}
	bubble(t, "many messages", func(t *testing.T) {
		h := connectUnread(t, "-total", "1m")
		begun := time.Now()
		stuck := h.ask("1", "tools/call", large)
		var sending sync.WaitGroup
		answers := make([]<-chan wire, many)
		sending.Go(func() {
			for i := range many {
				answers[i] = h.ask(fmt.Sprint(i+2), "tools/call", `{"name":"t"}`)
			}
		})
		sending.Wait()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the host waited for %v", took)
		}
		for _, answer := range answers {
			ended(t, begun, answer, "another call", remote.OrderLimit, `"content":[]`)
		}
		ended(t, begun, stuck, "the call", time.Minute, "exceeded wall-clock limit of 60s")
	})
	bubble(t, "the limit of the call comes first", func(t *testing.T) {
		h := connectUnread(t, "-total", "1m", "-tool", "t:total=2s")
		begun := time.Now()
		stuck, next := h.ask("1", "tools/call", large), h.ask("2", "tools/call", `{"name":"other"}`)
		ended(t, begun, stuck, "the call", 2*time.Second, "exceeded wall-clock limit of 2s")
		ended(t, begun, next, "the next call", 2*time.Second, `"content":[]`)
	})
	bubble(t, "the host cancels a call that waits", func(t *testing.T) {
		over, begun := make(chan struct{}), time.Now()
		t.Cleanup(func() { time.Sleep(time.Second) })
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength < 64<<10 && strings.Contains(peek(r), "unsent") {
				t.Errorf("the server got %s", peek(r))
			}
			unread(over)(w, r)
		}, "-total", "1m", "-idle", "0", "-grace", "0s", "-keep-alive", "0").initialized()
		t.Cleanup(func() { close(over) })
		stuck := h.ask("1", "tools/call", large)
		h.ask(`"unsent"`, "tools/call", `{"name":"t"}`)
		next := h.ask("3", "tools/call", `{"name":"other"}`)
		synctest.Wait()
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unsent"}}`)
		ended(t, begun, next, "the next call", remote.OrderLimit, `"content":[]`)
		ended(t, begun, stuck, "the call", time.Minute, "exceeded wall-clock limit of 60s")
	})
	bubble(t, "many bytes", func(t *testing.T) {
		h := connectUnread(t, "-total", "1m")
		begun := time.Now()
		var answers []<-chan wire
		for i := range 16 + 3 + 2 { // two are on their way
			answers = append(answers, h.ask(fmt.Sprint(i), "tools/call", large))
		}
		if took := time.Since(begun); took != 2*remote.OrderLimit { // until two messages have made room
			t.Errorf("the host waited for %v", took)
		}
		h.stop()
		for _, answer := range answers[:16] { // more may be on their way
			ended(t, begun, answer, "a call", 2*remote.OrderLimit, "shutting down")
		}
	})
}

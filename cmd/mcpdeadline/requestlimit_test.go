package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// SPEC 16.8: every request that the proxy passes on has a limit, initialize too.
func TestEveryRequestHasALimit(t *testing.T) {
	for _, tc := range []struct {
		method, params string
		flags          []string
		after          time.Duration
		says           string
	}{
		{"initialize", initialize, nil, 2 * time.Minute, "No progress for 120s"},
		{"ping", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
		{"tools/list", `{}`, []string{"-idle", "0", "-total", "5m"}, 5 * time.Minute, "limit of 300s"},
		{"prompts/get", `{"name":"x"}`, []string{"-idle", "0", "-total", "0"}, 2 * time.Minute, "No progress for 120s"},
		{"resources/read", `{"uri":"x:y"}`, []string{"-total", "1s"}, 30 * time.Second, "limit of 30s"}, // a server may have to be downloaded
		{"resources/subscribe", `{"uri":"x:y"}`, []string{"-idle", "40s"}, 40 * time.Second, "No progress for 40s"},
		{"logging/setLevel", `{"level":"debug"}`, nil, 2 * time.Minute, "No progress for 120s"},
		{"completion/complete", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
		{"server/discover", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
		{"tasks/result", `{"taskId":"t"}`, nil, 30 * time.Minute, "limit of 1800s"},
		{"x/unknown", `{}`, nil, 2 * time.Minute, "No progress for 120s"},
	} {
		t.Run(tc.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cancelled []string
				server := &scripted{serve: func(r *scriptedRun, m *message) bool {
					if m.Method == "notifications/cancelled" {
						cancelled = append(cancelled, string(m.raw))
					}
					return string(m.ID) == "7"
				}}
				h := connectScripted(t, server, tc.flags...)
				if tc.method != "initialize" {
					h.initialized()
				}
				begun := time.Now()
				answer := h.ask("7", tc.method, tc.params)
				m := <-answer
				if took := time.Since(begun); took != tc.after || m.Error == nil || !strings.Contains(string(m.Error), tc.says) {
					t.Errorf("after %v: %s", took, m.raw)
				}
				synctest.Wait()
				if want := tc.method != "initialize"; want != (len(cancelled) == 1) {
					t.Errorf("cancelled: %q", cancelled)
				}
				server.last.say(`{"jsonrpc":"2.0","id":7,"result":{}}`) // late
				synctest.Wait()
				h.nothingMore()
			})
		})
	}
}

// A request whose server shows that it lives has its total only; one that the host has cancelled is not answered.
func TestLimitOfARequestIsIdle(t *testing.T) { // SPEC 16.8
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{serve: func(r *scriptedRun, m *message) bool {
			if string(m.ID) == "7" {
				go func() {
					for range 10 {
						time.Sleep(time.Minute)
						r.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
					}
					r.answer(m, `{"messages":[]}`)
				}()
			}
			return string(m.ID) == "7" || string(m.ID) == "8"
		}}
		h := connectScripted(t, server).initialized()
		h.ask("8", "prompts/get", `{"name":"x"}`)
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		if m := <-h.ask("7", "prompts/get", `{"name":"x"}`); m.Error != nil {
			t.Errorf("%s", m.raw)
		}
		h.mu.Lock()
		if h.waits["8"] == nil {
			t.Error("answered")
		}
		h.mu.Unlock()
	})
}

// Each request of a batch has its limits, and the host gets the answers in one array.
func TestBatch(t *testing.T) { // SPEC 16.8
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{serve: func(r *scriptedRun, m *message) bool { return strings.Contains(string(m.Params), `"hang"`) }}
		h := connectScripted(t, server, "-total", "1s", "-grace", "0").initialized()
		call := func(id int, tool string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`, id, tool)
		}
		h.send(" [" + call(1, "hang") + "," + call(2, "a") + `,{"jsonrpc":"2.0","method":"notifications/x"},3,` + call(4, "hang") + `,{"jsonrpc":"2.0","id":5,"method":"ping","Method":"x"}]`)
		h.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		h.send("\r[]")
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.lone) != 1 || !strings.Contains(h.lone[0], `"no message"`) || len(h.got) != 1 {
			t.Fatalf("%d, %q", len(h.got), h.lone)
		}
		all := string(h.got[0].raw)
		for text, times := range map[string]int{"limit of 1s": 1, `"run 1"`: 1, `"no message"`: 1, `"jsonrpc"`: 4, `"id":4`: 0, "to be spelled": 1} {
			if strings.Count(all, text) != times {
				t.Errorf("%d times %q: %s", strings.Count(all, text), text, all)
			}
		}
		if seen := server.state().seen; strings.Join(seen[2:6], " ") != "tools/call tools/call notifications/x tools/call" {
			t.Errorf("%q", seen)
		}
	})
}

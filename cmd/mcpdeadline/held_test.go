package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// SPEC 16.8: what a host sends while its server is being started again waits within a bound in bytes; then the host
// waits. Neither the ends of calls nor that of the proxy do.
func TestHeldBytes(t *testing.T) {
	const starting = 20 * time.Second
	large := `{"name":"t","arguments":{"text":"` + strings.Repeat("x", 64<<10) + `"}}`
	for _, tc := range []struct {
		name   string
		flags  []string
		then   func(*scriptedHost)
		took   time.Duration
		answer string
	}{
		{"the server has started", []string{"-total", "1m"}, func(*scriptedHost) {}, starting, "run 2"},
		{"the calls have ended", []string{"-total", "5s"}, func(*scriptedHost) {}, 5 * time.Second, "wall-clock limit of 5s"},
		{"the proxy ends", []string{"-total", "1m"}, func(h *scriptedHost) { h.end() }, closeLimit + termLimit, "shutting down"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &scripted{
					starts: func(run int, _ func(string)) error {
						if run > 1 {
							time.Sleep(starting)
						}
						return nil
					},
					serve: func(r *scriptedRun, m *message) bool {
						if strings.Contains(string(m.Params), `"exit"`) {
							go r.close()
						}
						return false
					},
				}
				t.Cleanup(func() { // the last server ends
					server.last.close()
					time.Sleep(starting)
				})
				h := connectScripted(t, server, append(tc.flags, "-idle", "0", "-grace", "0s", "-keep-alive", "0")...)
				h.initialized()
				h.answered("0", "tools/call", `{"name":"exit"}`)
				synctest.Wait()
				begun := time.Now()
				var sent atomic.Int64
				answers := make(chan (<-chan *message), 100)
				go func() {
					for i := range 16 + 4 {
						answers <- h.ask(fmt.Sprint(i+1), "tools/call", large)
						sent.Add(1)
					}
					close(answers)
				}()
				synctest.Wait()
				if n := sent.Load(); n != 16 {
					t.Errorf("%d messages wait", n)
				}
				first := <-answers
				tc.then(h)
				if m := <-first; time.Since(begun) != tc.took || !strings.Contains(string(m.raw), tc.answer) {
					t.Errorf("after %v: %.200s", time.Since(begun), m.raw)
				}
				for answer := range answers {
					<-answer
				}
				if took := time.Since(begun); tc.took != 5*time.Second && took != tc.took || took > starting {
					t.Errorf("the last call has ended after %v", took)
				}
			})
		})
	}
}

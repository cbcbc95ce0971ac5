package calls_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// A world is a server whose runs end at random, and records which run has accepted and answered which request.
type world struct {
	mu       sync.Mutex
	random   *rand.Rand
	accepted map[string][]int  // the runs, by the id of the request
	answered map[string]string // the results
}

func (w *world) upTo(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// delay returns a duration that is often 0, so that much happens at the same instant.
func (w *world) delay() time.Duration {
	return time.Duration(max(w.upTo(9)-5, 0)) * time.Second
}

// afterFunc is time.AfterFunc without a timer of 0. The race detector of Go 1.26 may crash when two goroutines of a bubble
// make one at the same time, because the runtime fires both at once in one race context.
func afterFunc(d time.Duration, f func()) {
	if d <= 0 {
		go f()
		return
	}
	time.AfterFunc(d, f)
}

// begin makes a run that ends after a while. From then on it returns requests, and answers none.
func (w *world) begin(number int, r *run) {
	var mu sync.Mutex // guards ended, and is held while the run sends a message
	ended := false
	r.send = func(r *run, m *jsonrpc.Message) {
		id := string(m.ID)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ended:
			mu.Unlock()
			r.unsend(m)
			mu.Lock()
		case m.IsRequest():
			w.mu.Lock()
			w.accepted[id] = append(w.accepted[id], number)
			w.mu.Unlock()
			after := w.delay()
			if m.Method == "initialize" {
				after = 0
			}
			afterFunc(after, func() {
				mu.Lock()
				defer mu.Unlock()
				if ended {
					return
				}
				w.mu.Lock()
				w.answered[id] = fmt.Sprintf(`{"run":%d}`, number)
				w.mu.Unlock()
				r.Message(jsonrpc.Result(m.ID, map[string]any{"run": number}))
			})
		}
	}
	life := w.delay() * 5
	if number == 1 {
		life += time.Second // it must have been heard
	}
	afterFunc(life, func() {
		mu.Lock()
		ended = true
		mu.Unlock()
		afterFunc(w.delay(), func() { close(r.over) })
	})
}

// Whatever happens while runs of a server end and begin, each request has one answer: that of the run that has answered
// it or, if the run that accepted it has ended without, an error. No request is sent to a second run after the first
// has accepted it. SPEC 16.7 and 16.8.
func TestRandomRuns(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{random: rand.New(rand.NewPCG(seed, 0)), accepted: make(map[string][]int), answered: make(map[string]string)}
			h := newHost(t, w.begin)
			for id := range 30 {
				method := []string{"tools/call", "prompts/list"}[w.upTo(2)]
				h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"name":"a"}}`, id, method))
				time.Sleep(w.delay())
			}
			time.Sleep(10 * time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			for id := range 30 {
				id := fmt.Sprint(id)
				got, runs, want := h.answer(id), w.accepted[id], w.answered[id]
				switch {
				case len(runs) > 1:
					t.Errorf("seed %d: runs %d have accepted request %s", seed, runs, id)
				case strings.Count(got, "run") > 1 && want != "" || want != "" && got != want:
					t.Errorf("seed %d: answer to request %s: %s, want %s", seed, id, got, want)
				case got == "":
					t.Errorf("seed %d: no answer to request %s, which runs %d have accepted", seed, id, runs)
				case want == "" && len(runs) == 0 && !strings.Contains(got, "no new session"):
					t.Errorf("seed %d: request %s, which no run has accepted, is answered with %s", seed, id, got)
				}
			}
		})
		if t.Failed() {
			break
		}
	}
}

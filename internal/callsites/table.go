package callsites

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Table has a row for each place of a module, by its name. Where a place is come to in several ways, the name is
// followed by a slash and the way: "timeout.Hooks.Started/watch".
type Table map[string]Row

// A Row comes to one place.
type Row struct {
	// Do runs one operation, in which code of the caller's calls s.Hit, and returns when the operation has returned.
	Do func(s *Site)
	// Within is how long the operation may take, in the time of the bubble, while the code blocks. 0 means no time.
	Within time.Duration
	// Waits are words of the place's doc comment which say that the operation waits for the code. Then it may.
	Waits string
	// Panics says that a panic of the code and its Goexit are those of the goroutine that called the operation.
	Panics bool
	// Real runs the row with real time and processes, where Within is not measured.
	Real bool
	// Never says why the library calls no code at the place. Nothing is run then.
	Never string
}

// A Site is one attack at one place.
type Site struct {
	*testing.T
	attack  string
	release chan struct{}
	hit     chan struct{}
	called  atomic.Bool
}

// The ways in which code of the caller's misbehaves.
var attacks = []string{"block", "panic", "goexit", "call"}

// Given is the context with which a place calls the code, or nil if it passes none.
type Given context.Context

// Hit runs the attack. The code of the caller's at the place calls it, once or more often. calls are functions that
// the code calls back, in addition to those that need only a context.
func (s *Site) Hit(ctx Given, calls ...func()) {
	first := false
	select {
	case s.hit <- struct{}{}:
		first = !s.called.Swap(true)
	default:
	}
	switch s.attack {
	case "block":
		<-s.release
	case "panic":
		panic("the caller's code panics")
	case "goexit":
		runtime.Goexit()
	case "call":
		if !first { // a hook of all executions is also called for those that it starts
			return
		}
		if ctx == nil {
			ctx = context.Background()
		}
		_ = timeout.FromContext(ctx).Snapshot()
		heartbeat.Beat(ctx)
		heartbeat.BeatWith(ctx, "a detail")
		heartbeat.Hold(ctx)()
		timeout.Remaining(ctx)
		timeout.Closing(ctx)
		timeout.Watch(timeout.Hooks{})()
		for _, e := range timeout.Running() {
			e.Snapshot()
		}
		_ = timeout.Run(ctx, func(context.Context) error { return nil }, timeout.Config{})
		for _, call := range calls {
			call()
		}
	}
}

// Await waits until the code of the caller's has been called.
func (s *Site) Await() {
	s.hit <- <-s.hit
}

// Released is closed when the row is over, and ends what blocks.
func (s *Site) Released() <-chan struct{} { return s.release }

// Complete demands a row for each place of the packages that patterns name.
func (table Table) Complete(t *testing.T, patterns ...string) {
	places, err := Places(".", patterns...)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, p := range places {
		missing[p] = true
	}
	for name := range table {
		place, _, _ := strings.Cut(name, "/")
		if _, ok := missing[place]; !ok && !strings.HasPrefix(name, "context/") {
			t.Errorf("%s: the exported API has no such place", name)
		}
		missing[place] = false
	}
	for _, p := range places {
		if missing[p] {
			t.Errorf("%s has no row: code of the caller's is called there, or the row says why not", p)
		}
	}
}

// Test goes through the table.
func (table Table) Test(t *testing.T, patterns ...string) {
	texts, err := comments(".", patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range table {
		place, _, _ := strings.Cut(name, "/")
		if row.Waits != "" && !strings.Contains(texts[place], row.Waits) {
			t.Errorf("%s: the doc comment does not say %q:\n%s", name, row.Waits, texts[place])
		}
		if row.Never == "" {
			t.Run(name, row.test)
		}
	}
}

// test runs the attacks of one row.
func (row Row) test(t *testing.T) {
	for _, how := range attacks {
		t.Run(how, func(t *testing.T) {
			// Time stands still in a bubble while somebody waits for a mutex, so what hangs is found by real time.
			hung := time.AfterFunc(time.Minute, func() {
				_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
				panic(fmt.Sprintf("%s hangs: is the code of the caller's called with a lock held?", t.Name()))
			})
			defer hung.Stop()
			if row.Real { // one after the other, since what runs is looked at
				row.attack(t, how)
			} else {
				synctest.Test(t, func(t *testing.T) { row.attack(t, how) })
			}
		})
	}
}

// attack makes one attack and judges how the operation took it.
func (row Row) attack(t *testing.T, how string) {
	s := &Site{T: t, attack: how, release: make(chan struct{}), hit: make(chan struct{}, 1)}
	began := time.Now()
	returned, ended := false, make(chan time.Duration)
	var value any
	go func() {
		defer func() {
			value = recover()
			ended <- time.Since(began)
		}()
		row.Do(s)
		returned = true
	}()
	within := row.Within
	if row.Real {
		within = 50 * time.Second
	}
	if row.Waits != "" && how == "block" {
		select {
		case <-s.hit: // the doc comment says that the operation waits
			s.hit <- struct{}{}
		case <-time.After(within + time.Second):
		}
		close(s.release)
		<-ended
	} else {
		var took time.Duration
		select {
		case took = <-ended:
			close(s.release)
		case <-time.After(within + time.Hour):
			t.Errorf("the operation has not returned an hour after its bound of %v", within)
			close(s.release)
			<-ended
		}
		if took > within {
			t.Errorf("the operation took %v, want at most %v", took, within)
		}
	}
	if !returned && !(row.Panics && (how == "panic" || how == "goexit")) {
		t.Errorf("the operation did not return: its goroutine ended with a panic (%v) or a Goexit of the caller's code", value)
	}
	select {
	case <-s.hit:
	case <-time.After(time.Minute): // a hook may be told a moment after the operation has returned
		t.Error("the code of the caller's was never called")
	}
	// Whatever it did, executions go on, and none is left.
	if err := timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.Config{Total: time.Minute}); err != nil {
		t.Errorf("the next execution: %v", err)
	}
	if !row.Real {
		time.Sleep(time.Hour) // what was abandoned ends
	}
	for end := time.Now().Add(time.Minute); row.Real && len(timeout.Running()) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for _, e := range timeout.Running() {
		t.Errorf("still listed as running: %+v", e.Snapshot())
	}
}

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

// A Table has a row for each place of a module, by the name of the place. If several operations call code at a place,
// each has a row, whose name ends with a slash and a word: "timeout.Hooks.Started/watch".
type Table map[string]Row

// A Row tests one place.
type Row struct {
	// Do runs one operation that calls code of the caller at the place, and returns when the operation has returned.
	// The code must call s.Hit.
	Do func(s *Site)
	// Within is the longest time that the operation may take, in the time of the bubble, even while the code blocks. 0
	// means no time.
	Within time.Duration
	// Waits, unless it is "", are words of the place's doc comment that say that the operation waits for the code. Then
	// the operation may wait.
	Waits string
	// Panics allows a panic or a Goexit of the code to end the goroutine that called the operation.
	Panics bool
	// Real runs the row in real time, without a bubble, for example with processes. The bound is then 50 s.
	Real bool
	// Never, unless it is "", says why the library never calls code at the place. Then the row does not run.
	Never string
}

// A Site is one run of a row, with one kind of misbehaviour of the code.
type Site struct {
	*testing.T
	attack  string
	release chan struct{}
	hit     chan struct{}
	called  atomic.Bool
}

// attacks lists the ways in which code of the caller misbehaves.
var attacks = []string{"block", "panic", "goexit", "call"}

// Given is the context that the library passes to the code, or nil if it passes none.
type Given context.Context

// Hit misbehaves: it blocks until the run is over, panics, calls runtime.Goexit, or calls back into the library. The
// code of the caller at the place must call it, perhaps more than once. calls are functions of the library to call
// back, in addition to those that need only a context.
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
		if !first { // the executions that Hit starts below may call the same hook
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

// Await waits until the code of the caller has called Hit.
func (s *Site) Await() {
	s.hit <- <-s.hit
}

// Released returns a channel that is closed at the end of the run, when a blocked Hit returns.
func (s *Site) Released() <-chan struct{} { return s.release }

// Complete fails the test for each place of the packages that patterns name that has no row, and for each row whose
// place does not exist.
func (table Table) Complete(t *testing.T, patterns ...string) {
	places, err := Places(patterns...)
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

// Test runs the rows, and checks that the doc comments of their places have the words of Waits.
func (table Table) Test(t *testing.T, patterns ...string) {
	texts, err := comments(patterns...)
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
			// While a goroutine of a bubble waits for a mutex, the time of the bubble does not advance. Real time
			// finds such a deadlock.
			hung := time.AfterFunc(time.Minute, func() {
				_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
				panic(fmt.Sprintf("%s hangs: is the code of the caller's called with a lock held?", t.Name()))
			})
			defer hung.Stop()
			if row.Real { // not in parallel, because attack checks the list of running executions
				row.attack(t, how)
			} else {
				synctest.Test(t, func(t *testing.T) { row.attack(t, how) })
			}
		})
	}
}

// attack runs the operation once with one kind of misbehaviour, and checks how the operation ends.
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
	if row.Waits != "" && how == "block" { // the doc comment says that the operation waits
		select {
		case <-s.hit:
			s.hit <- struct{}{}
		case <-time.After(within + time.Second):
		}
		close(s.release)
		<-ended
	} else {
		late := time.AfterFunc(within+time.Hour, func() { close(s.release) })
		if took := <-ended; took > within {
			t.Errorf("the operation took %v, want at most %v", took, within)
		}
		if late.Stop() {
			close(s.release)
		}
	}
	if !returned && !(row.Panics && (how == "panic" || how == "goexit")) {
		t.Errorf("the operation did not return: its goroutine ended with a panic (%v) or a Goexit of the caller's code", value)
	}
	select {
	case <-s.hit:
	case <-time.After(time.Minute): // a hook may be called shortly after the operation has returned
		t.Error("the code of the caller's was never called")
	}
	// Whatever the code did, another execution works, and no execution is left running.
	if err := timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.Config{Total: time.Minute}); err != nil {
		t.Errorf("the next execution: %v", err)
	}
	if !row.Real {
		time.Sleep(time.Hour) // meanwhile the abandoned functions return
	}
	for end := time.Now().Add(time.Minute); row.Real && len(timeout.Running()) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for _, e := range timeout.Running() {
		t.Errorf("still listed as running: %+v", e.Snapshot())
	}
}

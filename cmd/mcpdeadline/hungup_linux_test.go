package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// The end of stdin is seen while what is before it waits, over pipes and sockets, and no earlier.
func TestHungUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	gone := hungUp(r)
	_, _ = w.WriteString("more")
	if gone() {
		t.Error("it has gone")
	}
	w.Close()
	if !gone() {
		t.Error("it has not gone")
	}
	if hungUp(strings.NewReader("")) != nil {
		t.Error("no file")
	}
}

// SPEC 16.8: the proxy ends with its host, also while more than it holds waits for a server that does not read.
func TestEndBehindUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hungUp atomic.Bool
		ctx, end := context.WithCancel(t.Context())
		s := newStall(hungUp.Load, end)
		for range 100 { // a server that reads slowly
			s.wait()
			time.Sleep(toolcall.ShutdownLimit - 1)
			s.read()
		}
		s.wait()
		time.Sleep(time.Hour) // the host is there
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("it ended before its host")
		}
		hungUp.Store(true)
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took > time.Second {
			t.Errorf("after %v", took)
		}
		s.read()
	})
}

// The same with a server that never reads.
func TestEndBehindUnreadMessages(t *testing.T) { // SPEC 16.8
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Bool
		vm := &virtualMachine{program: func(p *virtual) { p.Hang() }, gone: left.Load, most: most}
		h := vm.host(t, "-total", "1h", "-idle", "0", "--", "sleeper")
		go func() {
			for i := range 40 {
				if _, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":%d,"method":"x","params":{"x":"%s"}}`+"\n", i, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if over(h.ended) {
			t.Fatal("it ended before its host")
		}
		left.Store(true)
		begun := time.Now()
		<-h.ended
		// It looks every second, and then the server gets its time.
		if took := time.Since(begun); took > time.Second+closeLimit {
			t.Errorf("after %v", took)
		}
	})
}

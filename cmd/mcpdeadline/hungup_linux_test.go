package main

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
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
		if took := time.Since(begun); took > time.Second+server.CloseLimit {
			t.Errorf("after %v", took)
		}
	})
}

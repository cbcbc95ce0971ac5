package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/server"
)

// SPEC 16.8: the proxy ends with its host, also while more than it holds waits for a server that never reads.
func TestEndBehindUnreadMessages(t *testing.T) {
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

package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/host"
)

// SPEC 16.8: a message that waits ends the proxy once the host has gone, and neither while it is there nor while messages
// are read, however slowly.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		ctx, end := context.WithCancel(t.Context())
		s := host.NewStall(gone.Load, end)
		s.Wait()
		time.Sleep(time.Hour)
		gone.Store(true)
		for range 100 {
			s.Read()
			s.Wait()
			time.Sleep(host.UnreadLimit - 1)
		}
		s.Read()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("it ended although everything was read")
		}
		begun := time.Now()
		s.Wait()
		<-ctx.Done()
		if took := time.Since(begun); took != host.UnreadLimit {
			t.Errorf("after %v", took)
		}
		s.Read()
	})
}

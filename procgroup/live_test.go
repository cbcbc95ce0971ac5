package procgroup_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// No call of the callback begins after the command's Wait has returned, although there is
// always one to make.
func TestNoCallAfterTheEnd(t *testing.T) {
	var late atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 20 {
				var over atomic.Bool
				l := procgroup.NewLive(func(procgroup.Chunk) {
					if over.Load() {
						late.Add(1)
					}
				})
				feed := time.AfterFunc(0, func() {
					for i := 0; !over.Load(); i++ {
						l.Add(procgroup.Stream(i%2), []byte("x"))
					}
				})
				_ = l.Finish(time.Now().Add(20 * time.Millisecond))
				over.Store(true)
				feed.Stop()
			}
		})
	}
	wg.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d calls began after the end", n)
	}
}

package capture

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// No call of the callback begins after the command's Wait has returned, although there is
// always one to make.
func TestNoCallAfterTheEnd(t *testing.T) {
	var late atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 5 {
				var over atomic.Bool
				l := newLive(func(Chunk) {
					if over.Load() {
						late.Add(1)
					}
				}, func(error) {})
				feed := time.AfterFunc(0, func() {
					for i := 0; !over.Load(); i++ {
						l.add(i%2, []byte("x"), false)
					}
				})
				_, _ = l.finish(time.Now().Add(20 * time.Millisecond))
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

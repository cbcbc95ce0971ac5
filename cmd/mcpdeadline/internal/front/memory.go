package front

import (
	"context"
	"sync"
)

// A memory is what requests share, in bytes.
type memory struct {
	mu    sync.Mutex
	left  int64
	freed chan struct{} // closed, and replaced, when there is more
}

func newMemory(size int64) *memory { return &memory{left: size, freed: make(chan struct{})} }

// take waits until n bytes are left, and takes them. It reports false if ctx ends first.
func (b *memory) take(ctx context.Context, n int64) bool {
	for {
		b.mu.Lock()
		if b.left >= n {
			b.left -= n
			b.mu.Unlock()
			return true
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (b *memory) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	close(b.freed)
	b.freed = make(chan struct{})
}

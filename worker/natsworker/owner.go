package natsworker

import (
	"context"
	"sync"
)

// An owner is the part of a worker that exists only in Run, which has the consumer to itself.
type owner struct {
	pulling context.Context // no more messages are pulled after its end

	// c.Info writes a field that other methods read without a lock. Only Run uses c, and calls
	// c.Info while probing is full.
	probing chan struct{}

	mu    sync.Mutex
	shut  bool           // no more pulls begin
	pulls sync.WaitGroup // the outstanding pulls
}

// probe makes a round trip to the server.
func (w *worker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.attempt())
	defer cancel()
	select {
	case w.probing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.probing }()
	_, err := w.c.Info(ctx)
	return err
}

func (o *owner) beginPull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut || o.pulling.Err() != nil {
		return false
	}
	o.pulls.Add(1)
	return true
}

// waitForPulls waits until no pull request is outstanding, if the worker is stopping. A message given
// back earlier would be delivered to the next slot, which would give it back too, and each of these
// deliveries counts towards MaxDeliver.
func (o *owner) waitForPulls() {
	if o == nil || o.pulling.Err() == nil {
		return
	}
	o.mu.Lock()
	o.shut = true
	o.mu.Unlock()
	o.pulls.Wait()
}

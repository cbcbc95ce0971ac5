package natsworker

import (
	"context"
	"sync"
)

// An owner is the part of a worker that only Run has, because Run alone uses the consumer.
type owner struct {
	pulling context.Context // done when no more messages are to be pulled

	// probing is full while a goroutine calls c.Info, which is not safe for concurrent use.
	probing chan struct{}

	mu    sync.Mutex
	shut  bool           // beginPull returns false from now on
	pulls sync.WaitGroup // the outstanding pull requests
}

// probe makes a round trip to the server, and returns an error if it fails or takes longer than w.attempt.
func (w *worker) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.attempt())
	defer cancel()
	select { // if ctx has ended too, Info returns its error
	case w.probing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.probing }()
	_, err := w.c.Info(ctx)
	return err
}

// beginPull adds a pull request to pulls. It returns false, and adds none, if the worker is stopping.
func (o *owner) beginPull() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut || o.pulling.Err() != nil {
		return false
	}
	o.pulls.Add(1)
	return true
}

// waitForPulls waits until no pull request is outstanding, if the worker is stopping. Otherwise the server would
// deliver a message that is given back to a pull request of the same worker, which would give it back too, and each of
// these deliveries counts towards MaxDeliver.
func (o *owner) waitForPulls() {
	if o == nil || o.pulling.Err() == nil {
		return
	}
	o.mu.Lock()
	o.shut = true
	o.mu.Unlock()
	o.pulls.Wait()
}

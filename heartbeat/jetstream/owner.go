package hbjetstream

import (
	"context"
	"sync"
)

// An owner is what a worker has that has its consumer to itself, as that of Run does.
type owner struct {
	take context.Context // when it ends, no more messages are asked for

	// c.Info writes what the rest of c reads without a lock. Nobody else uses c, so it may be
	// called, by one at a time.
	asking chan struct{}

	mu   sync.Mutex
	shut bool           // asks grows no more
	asks sync.WaitGroup // requests that are out
}

// ask has the server answer a question about the consumer.
func (w *worker) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.attempt())
	defer cancel()
	select {
	case w.asking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.asking }()
	_, err := w.c.Info(ctx)
	return err
}

func (o *owner) mayAsk() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut || o.take.Err() != nil {
		return false
	}
	o.asks.Add(1)
	return true
}

// hush waits, when the worker stops, until nothing is asked for any more. What is given back
// before would come to the next slot, and from there to the one after, and each time be a
// delivery more towards MaxDeliver.
func (o *owner) hush() {
	if o == nil || o.take.Err() == nil {
		return
	}
	o.mu.Lock()
	o.shut = true
	o.mu.Unlock()
	o.asks.Wait()
}

package httptimeout

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

// A body is the body of a request. A read of at least one byte is a heartbeat. The end of the execution interrupts a
// read that waits for the client.
type body struct {
	io.ReadCloser
	ctx     context.Context // the context of the execution
	control *http.ResponseController

	mu      sync.Mutex
	reading int
	stopped bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.stopped || b.ctx.Err() != nil {
		b.mu.Unlock()
		return 0, refusal(b.ctx)
	}
	b.reading++
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	b.reading--
	b.mu.Unlock()
	if n > 0 {
		heartbeat.Beat(b.ctx)
	}
	return n, err
}

// interrupt makes reads fail from now on. It sets a read deadline only if a read is in progress, because after that
// the connection cannot serve another request.
func (b *body) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.reading > 0 {
		_ = b.control.SetReadDeadline(longAgo)
	}
}

package stream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Body returns rc with an idle limit: when a Read has waited for idle without a byte, rc is closed and this and every
// later Read return a [*SilenceError]. Each chunk of at least one byte renews the limit. There is no total limit.
//
// The limit runs only while a Read is pending, and starts again with each Read. The time between two reads does not
// count as silence, because nothing observes the stream then. So the limit never fires early, and a reader that calls
// Read late waits for at most one full limit more.
//
// If ctx is cancelled, rc is closed and Read returns an error that wraps a [*timeout.Error] of [timeout.ErrAborted],
// or of [timeout.ErrTotal] if ctx has reached its deadline. If ctx belongs to an execution, each chunk is also a
// heartbeat of that execution.
//
// Read and Close wait for rc, whose methods they call: closing rc must end a blocked Read, as it does for a response
// body, a connection and a pipe. rc is closed at most once. Close may be called from any goroutine, at any time and
// more than once; if another call is closing rc already, Close waits for it, for at most 1 s. Read is for one goroutine
// at a time. Two goroutines serve the stream until it has ended, failed or been closed, so the caller must close it.
//
// If rc is an io.Writer, the result is an io.Writer too; writes do not renew the limit. Body panics with a
// [*timeout.ConfigError] if ctx or rc is nil.
//
// A negative idle means no limit. 0 means 2 min.
func Body(ctx context.Context, rc io.ReadCloser, idle time.Duration) io.ReadCloser {
	if ctx == nil {
		panic(&timeout.ConfigError{Key: "stream.Body ctx", Value: "nil", Accepted: "a context"})
	}
	if rc == nil {
		panic(&timeout.ConfigError{Key: "stream.Body rc", Value: "nil", Accepted: "a body"})
	}
	w := begin(ctx, idle, 0, nil)
	w.suspend(true)
	return newBody(w, rc, nil)
}

type limitedBody struct {
	w      *watch
	rc     io.ReadCloser
	closer *closer
	leave  func() bool // cancels the closing of rc when the context ends
	judge  *judge
	count
}

// newBody returns a body that reads rc under w, whose idle check is held. j decides which chunks are signs of life;
// nil means all.
func newBody(w *watch, rc io.ReadCloser, j *judge) io.ReadCloser {
	b := &limitedBody{w: w, rc: rc, closer: newCloser(rc), judge: j}
	b.count.events = j != nil
	b.leave = context.AfterFunc(w.ctx, b.closer.stop)
	if wr, ok := rc.(io.Writer); ok {
		return &duplex{b, wr}
	}
	return b
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if err := b.w.stopped(); err != nil {
		return 0, b.silence(err)
	}
	if len(p) == 0 {
		return 0, nil // there is nothing to wait for
	}
	b.w.resume()
	n, err := b.rc.Read(p)
	// A read without bytes and without an error is not a chunk, and so the wait continues (SPEC 4.4).
	for n == 0 && err == nil && b.w.ctx.Err() == nil {
		n, err = b.rc.Read(p)
	}
	alive := false
	if n > 0 {
		signs := b.judge.signs(p[:n])
		b.add(signs)
		if alive = signs > 0; alive {
			b.w.chunk()
		}
	}
	b.w.suspend(alive)
	if err == nil && n > 0 {
		return n, nil
	}
	// A stop takes precedence over the error that closing rc causes (SPEC 3.7). But bytes that were read are returned
	// first, and the next Read returns the error of the stop.
	if stop := b.w.stopped(); stop != nil {
		if n > 0 {
			return n, nil
		}
		return 0, b.silence(stop)
	}
	b.finish()
	return n, err
}

func (b *limitedBody) Close() error {
	defer b.finish()        // also if Close of rc panics
	return b.closer.close() // before finish ends the context, which would abort the exchange
}

func (b *limitedBody) finish() {
	b.leave()
	b.w.end()
}

// A duplex is the body of an upgraded connection.
type duplex struct {
	*limitedBody
	io.Writer
}

// CloseWrite closes the writing half of the connection, for proxies that close the two halves separately. It returns
// an error that wraps http.ErrNotSupported if the connection has no such method.
func (d *duplex) CloseWrite() error {
	if cw, ok := d.Writer.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return fmt.Errorf("stream: CloseWrite: %w", http.ErrNotSupported)
}

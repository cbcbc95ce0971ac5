package stream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Body returns rc with an idle limit: a Read that has waited for idle without a byte
// closes rc and returns a [*timeout.Error] of [timeout.KindIdle], as does every Read after it.
// Each chunk of at least one byte renews the limit. There is no total limit.
// An idle of 0 is no limit.
//
// The limit runs only while a Read is pending, and starts afresh with each Read. What
// the reader does between two reads is not the stream's silence, and as long as nobody
// looks, nobody knows whether the stream is silent. So the limit is never early; a reader
// that comes late waits for up to one whole limit more.
//
// When ctx is over, rc is closed, and Read returns an error of [timeout.KindAborted], or
// [timeout.KindTotal] if it was ctx's deadline. If ctx belongs to an execution, each chunk is also a
// heartbeat there. The options are those of [timeout.Run]: a logger,
// hooks, a name; a [timeout.Config] among them replaces idle and may set a total.
//
// rc.Close must end a blocked Read, as it does for a response body, a connection and a
// pipe. Body calls it once at the most. Close may be called from any goroutine, at any time
// and more than once; Read is for one goroutine at a time. Two goroutines serve the stream
// until it has ended, failed or been closed; so close it.
//
// If rc is an io.Writer, so is the result; writes renew nothing. Body panics if ctx or
// rc is nil.
func Body(ctx context.Context, rc io.ReadCloser, idle time.Duration, opts ...timeout.Option) io.ReadCloser {
	if ctx == nil {
		panic("stream: nil context")
	}
	if rc == nil {
		panic("stream: nil body")
	}
	w := begin(ctx, idle, opts)
	w.suspend()
	return newBody(w, rc)
}

type limitedBody struct {
	w     *watch
	rc    io.ReadCloser
	close func() error // rc.Close, once
	leave func() bool  // takes back the close on a stop
}

// newBody needs a watch that is suspended.
func newBody(w *watch, rc io.ReadCloser) io.ReadCloser {
	b := &limitedBody{w: w, rc: rc, close: sync.OnceValue(rc.Close)}
	b.leave = context.AfterFunc(w.ctx, func() { _ = b.close() })
	if wr, ok := rc.(io.Writer); ok {
		return &duplex{b, wr}
	}
	return b
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if err := b.w.stopped(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil // nothing is waited for
	}
	b.w.resume()
	n, err := b.rc.Read(p)
	// No bytes and no error are no chunk, so the wait goes on. SPEC 4.4.
	for n == 0 && err == nil && b.w.ctx.Err() == nil {
		n, err = b.rc.Read(p)
	}
	if n > 0 {
		b.w.chunk()
	}
	b.w.suspend()
	if err == nil && n > 0 {
		return n, nil
	}
	// The stop goes first, whatever rc makes of being closed. SPEC 3.7. But bytes that came
	// are returned, and the error is that of the next Read.
	if stop := b.w.stopped(); stop != nil {
		if n > 0 {
			return n, nil
		}
		return 0, stop
	}
	b.finish()
	return n, err
}

func (b *limitedBody) Close() error {
	err := b.close() // before the end of the context, which would abort the exchange
	b.finish()
	return err
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

// CloseWrite is for proxies that close the halves of a connection one by one.
func (d *duplex) CloseWrite() error {
	if cw, ok := d.Writer.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return fmt.Errorf("stream: CloseWrite: %w", http.ErrNotSupported)
}

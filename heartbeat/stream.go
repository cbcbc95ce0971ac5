package heartbeat

import (
	"context"
	"io"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// Reader returns a reader that reads from r and beats for the execution of ctx after every read of at least one byte,
// with or without an error. A read of no bytes does not beat.
//
// Cancelling ctx does not interrupt a blocked read. The reader is safe for concurrent use if r is.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	return &reader{r: r, cell: pulse.Of(ctx)}
}

type reader struct {
	r    io.Reader
	cell *pulse.Cell
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.cell.Beat()
	}
	return n, err
}

// Writer returns a writer that writes to w and beats for the execution of ctx after every write of at least one byte,
// with or without an error. A write of no bytes does not beat. The writer is safe for concurrent use if w is.
func Writer(ctx context.Context, w io.Writer) io.Writer {
	return &writer{w: w, cell: pulse.Of(ctx)}
}

type writer struct {
	w    io.Writer
	cell *pulse.Cell
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if n > 0 {
		w.cell.Beat()
	}
	return n, err
}

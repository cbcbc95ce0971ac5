package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/tooldeadline/tooldeadline/heartbeat"
)

const (
	refresh = 200 * time.Millisecond
	// rateOver is about how long ago output stops to count for the rate.
	rateOver = 2 * time.Second
	// stuck is how long a terminal may take for the last of it.
	stuck = time.Second
)

// A status is a live line on the terminal: what the command's limits are, and how far it
// is from them.
type status struct {
	total, idle time.Duration
	progress    *mpb.Progress
	line        *mpb.Bar
	writers     []*lineWriter
	stopOnce    sync.Once

	written atomic.Int64
	begun   time.Time
	monitor atomic.Pointer[heartbeat.Monitor] // nil before the start

	rate rate // used by the renderer only
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// newStatus takes the terminal of the standard error.
func newStatus(o options) *status {
	s := &status{total: o.total, idle: o.idle, begun: time.Now()}
	s.rate.at = s.begun
	var out io.Writer = os.Stderr
	if width, height, err := term.GetSize(int(os.Stderr.Fd())); err != nil || width == 0 || height == 0 {
		out = struct{ io.Writer }{out} // of unknown size, so it is treated as 80 columns
	}
	s.progress = mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(refresh))
	s.line = s.progress.MustAdd(0, mpb.BarFillerFunc(s.fill), mpb.BarRemoveOnComplete())
	return s
}

// start makes ctx the execution that is shown.
func (s *status) start(ctx context.Context) { s.monitor.Store(heartbeat.FromContext(ctx)) }

// stop takes the line away. What was written of a last line is passed on. A terminal that
// takes nothing, as after Ctrl-S, is not waited for.
func (s *status) stop() {
	s.stopOnce.Do(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.line.Abort(true)
			s.progress.Wait()
			for _, w := range s.writers {
				w.flush()
			}
		}()
		select {
		case <-done:
		case <-time.After(stuck):
		}
	})
}

// beside gives a writer for f that does not disturb the line. Where f is a terminal, it is
// the same one, and what is written appears above the line.
func (s *status) beside(f *os.File) io.Writer {
	if !isTerminal(f) {
		return f
	}
	w := &lineWriter{progress: s.progress, after: f}
	s.writers = append(s.writers, w)
	return w
}

// output is beside for what the command writes: it is counted.
func (s *status) output(f *os.File) io.Writer {
	w := s.beside(f)
	return writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		s.written.Add(int64(n))
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// fill draws the line.
func (s *status) fill(w io.Writer, st decor.Statistics) error {
	if st.Aborted {
		return nil
	}
	text := s.text(time.Now())
	if len(text) >= st.AvailableWidth {
		text = text[:max(st.AvailableWidth-1, 0)]
	}
	_, err := io.WriteString(w, text)
	return err
}

// text is the line, in ASCII: 12s of 1m0s, idle 3s of 10s, 1.2 MiB/s, 34 MiB.
func (s *status) text(now time.Time) string {
	var b strings.Builder
	limited(&b, now.Sub(s.begun), s.total)
	if m := s.monitor.Load(); m != nil {
		b.WriteString(", idle ")
		limited(&b, now.Sub(m.Last()), s.idle)
	}
	n := s.written.Load()
	fmt.Fprintf(&b, ", %s/s, %s", size(s.rate.next(now, n)), size(n))
	return b.String()
}

// size gives bytes as B, which mpb calls b.
func size(n int64) string {
	return strings.Replace(fmt.Sprintf("% .1f", decor.SizeB1024(n)), " b", " B", 1)
}

func limited(b *strings.Builder, d, limit time.Duration) {
	fmt.Fprintf(b, "%.1fs", max(d, 0).Seconds())
	if limit > 0 {
		fmt.Fprintf(b, " of %v", limit)
	}
}

// A rate is an average in which the past fades.
type rate struct {
	at      time.Time
	written int64
	value   float64
}

func (r *rate) next(now time.Time, written int64) int64 {
	if passed := now.Sub(r.at); passed > 0 {
		share := min(float64(passed)/float64(rateOver), 1)
		current := float64(written-r.written) / passed.Seconds()
		r.value += share * (current - r.value)
		r.at, r.written = now, written
	}
	return int64(r.value)
}

// A lineWriter writes whole lines above the live line: the terminal's cursor has to be
// at the beginning of one when that is drawn. The rest waits for its end.
type lineWriter struct {
	progress *mpb.Progress
	after    io.Writer // once the live line is gone

	mu   sync.Mutex
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	if len(w.rest) > maxLine {
		end = len(w.rest)
	}
	if err := w.put(w.rest[:end]); err != nil {
		return 0, err
	}
	w.rest = append(w.rest[:0], w.rest[end:]...)
	return len(p), nil
}

// maxLine is how much waits for the end of its line.
const maxLine = 64 << 10

func (w *lineWriter) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.progress.Write(p)
	if errors.Is(err, mpb.ErrDone) {
		_, err = w.after.Write(p)
	}
	return err
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.put(w.rest)
	w.rest = nil
}

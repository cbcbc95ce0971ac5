package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

const (
	refresh = 200 * time.Millisecond
	// rateOver is about how long output counts for the rate.
	rateOver = 2 * time.Second
	// unseen is the time without a refresh after which another program may have used the terminal.
	unseen = time.Second
	// defaultWidth is for terminals that do not report their width.
	defaultWidth = 80
)

// A status is a live line on the terminal with the command's limits and how far it is from them. It is
// drawn only in the foreground.
type status struct {
	total, idle time.Duration
	ours        func() bool
	stopping    sync.Once
	stopped     chan struct{}

	written atomic.Int64
	begun   time.Time
	monitor atomic.Pointer[heartbeat.Monitor] // nil before the start

	mu      sync.Mutex
	screen  *cwriter.Writer // its pending output removes the line
	drawn   time.Time       // when the line was last drawn
	gone    bool            // the line is removed for good
	rate    rate
	writers []*lineWriter
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// newStatus draws on the terminal of standard error while ours returns true.
func newStatus(total, idle time.Duration, ours func() bool) *status {
	s := &status{total: total, idle: idle, ours: ours, stopped: make(chan struct{}), begun: time.Now()}
	s.rate.at = s.begun
	s.screen = cwriter.New(stdio.New(os.Stderr))
	go func() {
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = s.draw(nil)
			case <-s.stopped:
				return
			}
		}
	}()
	return s
}

// start makes the execution of ctx the one that is shown.
func (s *status) start(ctx context.Context) { s.monitor.Store(heartbeat.FromContext(ctx)) }

// draw redraws the line, with the text above it.
func (s *status) draw(above []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := s.ours()
	if !ours || time.Since(s.drawn) > unseen {
		s.screen.Reset() // the line, if there is one, is no longer the last
	}
	s.screen.Write(above)
	if !ours || s.gone {
		return s.screen.Flush(0)
	}
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width <= 0 {
		width = defaultWidth
	}
	text := s.text(time.Now())
	s.screen.WriteString(text[:min(len(text), width-1)] + "\n")
	err = s.screen.Flush(1)
	s.drawn = time.Now()
	return err
}

// moved is called after SIGCONT, when another program may have used the terminal. A refresh in the
// milliseconds before SIGCONT is noticed overwrites one line of that program: nothing else tells a
// process that it was stopped.
func (s *status) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.Reset()
}

// stop removes the line and passes on an unfinished last line of output. It does not wait for a
// terminal that accepts nothing, as after Ctrl-S.
func (s *status) stop() {
	s.stopping.Do(func() {
		close(s.stopped)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.mu.Lock()
			s.gone = true
			s.mu.Unlock()
			_ = s.draw(nil)
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

// beside returns a writer for f that does not disturb the line. If f is a terminal, it is the same one,
// and the output appears above the line. Otherwise it is w, which writes to f.
func (s *status) beside(f *os.File, w io.Writer) io.Writer {
	if !isTerminal(f) {
		return w
	}
	above := &lineWriter{above: s.draw}
	s.writers = append(s.writers, above)
	return above
}

// output is like beside, for the output of the command, which is counted.
func (s *status) output(f *os.File, w io.Writer) io.Writer {
	w = s.beside(f, w)
	return writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		s.written.Add(int64(n))
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// text returns the line, in ASCII: 12s of 1m0s, idle 3s of 10s, 1.2 MiB/s, 34 MiB.
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

// size formats a number of bytes. mpb writes b for B.
func size(n int64) string {
	return strings.Replace(fmt.Sprintf("% .1f", decor.SizeB1024(n)), " b", " B", 1)
}

func limited(b *strings.Builder, d, limit time.Duration) {
	fmt.Fprintf(b, "%.1fs", max(d, 0).Seconds())
	if limit > 0 {
		fmt.Fprintf(b, " of %v", limit)
	}
}

// A rate is a moving average.
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

// A lineWriter writes whole lines above the live line, because the cursor has to be at the beginning of
// a line when that is drawn. An unfinished line waits for its end.
type lineWriter struct {
	above func([]byte) error

	mu   sync.Mutex
	rest []byte
}

// maxLine is the largest unfinished line, in bytes, that waits for its end.
const maxLine = 64 << 10

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

func (w *lineWriter) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return w.above(p)
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.put(w.rest)
	w.rest = nil
}

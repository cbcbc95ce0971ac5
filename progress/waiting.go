package progress

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/internal/waitadvice"
)

// english is the default of Words in a Wait. It returns a text such as "Waiting for approval of rm -r build (20s so
// far, 10s left)" or, in the first second, "Waiting for approval of rm -r build (up to 30s)".
func english(what string, elapsed, left time.Duration) string {
	text := "Waiting for " + what
	if elapsed < time.Second {
		if left >= 0 {
			text += fmt.Sprintf(" (up to %v)", rounded(elapsed+left))
		}
		return text
	}
	whole := elapsed.Truncate(time.Second)
	text += fmt.Sprintf(" (%v so far", whole)
	if left >= 0 {
		text += fmt.Sprintf(", %v left", (left + elapsed - whole).Round(time.Second))
	}
	return text + ")"
}

// rounded returns d rounded for a person to read. The result is 0 only if d is 0 or negative.
func rounded(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return 0
	case d < time.Second:
		return max(d.Round(time.Millisecond), time.Millisecond)
	}
	return d.Round(time.Second)
}

// A waiting is a wait in progress. Its message is formatted each time that it is sent, so that a beat of
// other code of the tool between two keep-alives sends the current times too.
type waiting struct {
	what    string
	expired string        // the text of the error if nobody answers
	limit   time.Duration // 0 means no limit
	words   func(what string, elapsed, left time.Duration) string
	mute    atomic.Bool // words has not returned in time, or has panicked
	cell    *pulse.Cell
	start   time.Duration // the time of cell at which the wait began

	mu       sync.Mutex // guards the fields below; held during each beat, so that none follows freeze
	timer    pulse.Timer
	over     bool          // freeze has been called
	duration time.Duration // how long the wait took, once over is true
}

func init() {
	waitadvice.Of = func(detail any) string {
		if u, ok := detail.(*Update); ok && u != nil && u.waiting != nil {
			return u.waiting.expired
		}
		return ""
	}
}

// beat starts a timer that beats at the interval until freeze is called. The timer calls it for each beat.
func (w *waiting) beat(every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.timer != nil {
		w.cell.Beat()
		w.timer.Reset(every)
		return
	}
	w.timer = pulse.AfterFunc(w.cell.Clock(), every, func() { w.beat(every) })
}

// freeze ends the beats, and stops the clock of the message, which keeps its times from then on. It may be called more
// than once.
func (w *waiting) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over, w.duration = true, w.cell.Now()-w.start
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *waiting) elapsed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return w.duration
	}
	return w.cell.Now() - w.start
}

// String returns the message with the current times.
func (w *waiting) String() string { return w.text(w.elapsed()) }

// unlike returns the message with the current times, and adds the elapsed time if the message would equal last.
func (w *waiting) unlike(last string) string {
	elapsed := w.elapsed()
	text := w.text(elapsed)
	if text == last {
		text += fmt.Sprintf(" (after %v)", rounded(elapsed))
	}
	return text
}

func (w *waiting) text(elapsed time.Duration) string {
	left := time.Duration(-1)
	if w.limit > 0 {
		left = max(w.limit-elapsed, 0)
	}
	if w.words == nil || w.mute.Load() {
		return english(w.what, elapsed, left)
	}
	words := new(string) // only for this call, which may still write to it after texts.Ask has returned
	if !texts.Ask(func() { *words = w.words(w.what, elapsed, left) }) {
		w.mute.Store(true)
		return english(w.what, elapsed, left)
	}
	return texts.Cut(*words)
}

// shorten cuts the name of the awaited answer to 160 bytes, so that [UpdateOf] does not cut the times that follow it.
func shorten(what string) string {
	const most = 160
	if len(what) <= most {
		return what
	}
	return strings.ToValidUTF8(what[:most-len("...")], "") + "..."
}

package procgroup

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A record has what a watch has told.
type record struct {
	mu  sync.Mutex
	all []InputWait
}

func (r *record) add(w InputWait) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, w)
}

func (r *record) get() []InputWait {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// aLook is how long a look is awaited: looks are put together, which delays each a little.
const aLook = waits.LookEvery + 100*time.Millisecond

// SPEC 6.16: a stop by the terminal that was found before the command printed something is no reason to stop it.
func TestStoppedByTheTerminalDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var stopped []int
		w := &inputWatch{cell: pulse.Of(t.Context()), out: &capture.Capture{}, stopped: func(pid int) { stopped = append(stopped, pid) }}
		w.meter = func() waits.Look {
			if looks.Add(1) == 1 {
				w.stirred()
			}
			return waits.Look{State: waits.StoppedByTerminal, Pid: int(looks.Load())}
		}
		w.start()
		time.Sleep(3 * aLook)
		synctest.Wait()
		if looks.Load() != 2 || len(stopped) != 1 || stopped[0] != 2 {
			t.Errorf("%d looks, stopped by %v", looks.Load(), stopped)
		}
		w.end(true)
	})
}

// SPEC 6.18: of output that comes at the moment at which a wait is made known, one of the two sees the other, and the wait
// is known no more; nor does progress say anything of it.
func TestInputStirredWhilePublished(t *testing.T) {
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		w := &inputWatch{cell: pulse.Of(ctx), out: &capture.Capture{}}
		wait := InputWait{Pid: 7, Certain: true}
		for range 3000 {
			at := w.stirs.Load()
			begin, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				<-begin
				w.stirred()
			}()
			close(begin)
			runtime.Gosched() // on one processor the other one would always be second
			w.publish(wait, at)
			<-done
			if w.now().Pid != 0 || w.cell.Detail() != nil {
				t.Fatalf("%+v, %v", w.now(), w.cell.Detail())
			}
		}
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
}

// SPEC 6.18: a wait that was found before the output that came since is not made known, not even for a moment, and is no
// reason to stop the command. What was known before is not, either.
func TestInputFoundTooLate(t *testing.T) {
	err := timeout.Run(t.Context(), func(ctx context.Context) error {
		var told record
		stops := 0
		w := &inputWatch{cell: pulse.Of(ctx), out: &capture.Capture{}, told: told.add, stop: func() { stops++ }}
		wait := InputWait{Pid: 7, Certain: true}
		w.stirred()
		w.set(wait, capture.Mark{}, 0)
		if w.now().Pid != 0 || w.cell.Detail() != nil || told.get() != nil || stops != 0 {
			t.Errorf("%+v, %v, told %v, stopped %d times", w.now(), w.cell.Detail(), told.get(), stops)
		}
		w.stop = nil
		w.set(wait, capture.Mark{}, 1)
		if w.now() != wait || w.cell.Detail() == nil {
			t.Errorf("%+v, %v", w.now(), w.cell.Detail())
		}
		other := InputWait{Pid: 8, Certain: true}
		w.set(other, capture.Mark{}, 0)
		if w.now().Pid != 0 || w.cell.Detail() != nil || len(told.get()) != 1 {
			t.Errorf("%+v, %v, told %v", w.now(), w.cell.Detail(), told.get())
		}
		w.set(other, capture.Mark{}, 1)
		if w.set(InputWait{}, capture.Mark{}, 1); w.now().Pid != 0 || w.cell.Detail() != nil || len(told.get()) != 3 {
			t.Errorf("%+v, %v, told %v", w.now(), w.cell.Detail(), told.get())
		}
		w.stop = func() { stops++ }
		w.set(InputWait{Pid: 9, Prompt: "probably?"}, capture.Mark{}, 1)
		if w.stirred(); w.now().Pid != 0 || stops != 0 {
			t.Errorf("%+v after output; stopped %d times, although it only probably waited", w.now(), stops)
		}
		w.set(wait, capture.Mark{}, 2)
		if w.stirred(); w.now() != wait || stops != 1 {
			t.Errorf("%+v: it is why the command was stopped, %d times", w.now(), stops)
		}
		return nil
	}, timeout.Config{})
	if err != nil {
		t.Error(err)
	}
}

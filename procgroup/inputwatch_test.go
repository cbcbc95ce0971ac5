package procgroup

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
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

// SPEC 6.18, 15.6: a reported wait rests on a look that began after the last output and the last input, however long
// looks take and however rare they are. The looks are fakes here, so that the clock can be one.
func TestInputIsKnownFromLooksAfterIt(t *testing.T) {
	const (
		takes = time.Second
		rare  = 3 * time.Second // between the looks after the second
		first = 2*proctree.LookEvery + 2*takes + 5*rare
	)
	certainly := InputWait{Pid: 7, Certain: true}
	for name, tt := range map[string]struct {
		stir   func(*inputWatch)
		goesOn bool
		meters int
		told   []InputWait
	}{
		"output, and a wait":       {(*inputWatch).stirred, false, 1, []InputWait{certainly, certainly}},
		"output, and work":         {(*inputWatch).stirred, true, 1, []InputWait{certainly, {}}},
		"input that is not enough": {(*inputWatch).fed, false, 2, []InputWait{certainly, {}, certainly}},
		"input, and work":          {(*inputWatch).fed, true, 2, []InputWait{certainly, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					var told record
					meters := 0
					var works, looking atomic.Bool
					w := &inputWatch{cell: pulse.Of(ctx), out: &capture.Capture{}, told: told.add}
					w.newMeter = func() proctree.InputMeter {
						meters++
						sure := false
						return func() proctree.InputLook {
							found, before := !works.Load(), sure
							sure = found
							looking.Store(true)
							time.Sleep(takes)
							looking.Store(false)
							if !found || !before { // the second look must find the same
								return proctree.InputLook{Next: proctree.LookEvery}
							}
							return proctree.InputLook{Waiting: proctree.InputCertainly, Pid: 7, Next: rare}
						}
					}
					w.meter = w.newMeter()
					w.start()
					time.Sleep(first)
					synctest.Wait()
					if got := w.now(); got != certainly {
						t.Fatalf("%+v", got)
					}
					if pulse.Of(ctx).Detail() == nil {
						t.Error("progress does not say so")
					}

					works.Store(tt.goesOn)
					stirred := time.Now()
					tt.stir(w)
					if got, detail := w.now(), pulse.Of(ctx).Detail(); got.Pid != 0 || detail != nil {
						t.Errorf("%+v and %v right after it", got, detail)
					}
					for time.Since(stirred) < proctree.LookEvery+takes-1 {
						time.Sleep(time.Millisecond)
						if got := w.now(); got.Pid != 0 && time.Since(stirred) < proctree.LookEvery+takes {
							t.Fatalf("%+v %v after it, before a look", got, time.Since(stirred))
						}
					}
					time.Sleep(10 * time.Second)
					for looking.Load() { // to wait for its lock would stop the clock
						time.Sleep(time.Millisecond)
					}
					w.end(true)
					if got := w.now(); (got.Pid != 0) == tt.goesOn {
						t.Errorf("%+v at the end", got)
					}
					w.fed()
					if got := w.now(); (got.Pid != 0) == tt.goesOn {
						t.Errorf("%+v after input that comes after the end", got)
					}
					w.end(false)
					if got := w.now(); got.Pid != 0 {
						t.Errorf("%+v, although it has ended by itself", got)
					}
					if diff := cmp.Diff(tt.told, told.get()); diff != "" || meters != tt.meters {
						t.Errorf("%d meters\n%s", meters, diff)
					}
					return nil
				}, timeout.Config{})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// aLook is how long a look is awaited: looks are put together, which delays each a little.
const aLook = proctree.LookEvery + 100*time.Millisecond

// Output or input during a look makes its outcome void.
func TestInputDuringALook(t *testing.T) {
	for name, stir := range map[string]func(*inputWatch){"output": (*inputWatch).stirred, "input": (*inputWatch).fed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told record
				var looks atomic.Int32
				w := &inputWatch{cell: pulse.Of(t.Context()), out: &capture.Capture{}, told: told.add}
				w.meter = func() proctree.InputLook {
					if looks.Add(1) == 1 {
						stir(w)
					}
					return proctree.InputLook{Waiting: proctree.InputCertainly, Pid: 7, Next: time.Minute}
				}
				meter := w.meter
				w.newMeter = func() proctree.InputMeter { return meter }
				w.start()
				time.Sleep(aLook)
				synctest.Wait()
				if looks.Load() != 1 || w.now().Pid != 0 || told.get() != nil {
					t.Errorf("%d looks, %+v, %v", looks.Load(), w.now(), told.get())
				}
				time.Sleep(aLook)
				synctest.Wait()
				if looks.Load() != 2 || w.now().Pid != 7 || len(told.get()) != 1 {
					t.Errorf("%d looks, %+v, %v", looks.Load(), w.now(), told.get())
				}
				w.end(true)
			})
		})
	}
}

// SPEC 6.16: a stop by the terminal that was found before the command printed something is no reason to stop it.
func TestStoppedByTheTerminalDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var stopped []int
		w := &inputWatch{cell: pulse.Of(t.Context()), out: &capture.Capture{}, stopped: func(pid int) { stopped = append(stopped, pid) }}
		w.meter = func() proctree.InputLook {
			if looks.Add(1) == 1 {
				w.stirred()
			}
			return proctree.InputLook{Waiting: proctree.StoppedByTerminal, Pid: int(looks.Load())}
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

// SPEC 6.18: what happens while a wait is made known brings the next look soon, however late it would be otherwise. The
// callback stands for whatever takes its time between a look and the next one.
func TestInputWhileAWaitIsTold(t *testing.T) {
	for name, stir := range map[string]func(*inputWatch){"output": (*inputWatch).stirred, "input": (*inputWatch).fed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told record
				var looks atomic.Int32
				w := &inputWatch{cell: pulse.Of(t.Context()), out: &capture.Capture{}}
				w.told = func(wait InputWait) {
					if told.add(wait); len(told.get()) == 1 {
						stir(w)
					}
				}
				w.meter = func() proctree.InputLook {
					looks.Add(1)
					return proctree.InputLook{Waiting: proctree.InputCertainly, Pid: 7, Next: time.Hour}
				}
				meter := w.meter
				w.newMeter = func() proctree.InputMeter { return meter }
				w.start()
				time.Sleep(aLook)
				synctest.Wait()
				if looks.Load() != 1 || w.now().Pid != 0 || len(told.get()) != 1 {
					t.Errorf("%d looks, %+v, %v", looks.Load(), w.now(), told.get())
				}
				time.Sleep(aLook)
				synctest.Wait()
				if looks.Load() != 2 || w.now().Pid != 7 || len(told.get()) != 2 {
					t.Errorf("%d looks, %+v, %v", looks.Load(), w.now(), told.get())
				}
				w.end(true)
			})
		})
	}
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

// SPEC 6.11: a look that never returns is not begun again, delays neither the end nor what is known, and is counted. What
// it finds after the end has no effect.
func TestInputLookThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var looks atomic.Int32
		var told record
		w := &inputWatch{cell: pulse.Of(t.Context()), out: &capture.Capture{}, told: told.add, stop: func() { t.Error("it is stopped") }}
		w.meter = func() proctree.InputLook {
			looks.Add(1)
			<-release
			return proctree.InputLook{Waiting: proctree.InputCertainly, Pid: 7, Next: time.Second}
		}
		w.newMeter = func() proctree.InputMeter { return w.meter }
		w.start()
		goroutines := runtime.NumGoroutine()
		for range 20 {
			time.Sleep(aLook)
			w.stirred()
			w.fed()
			synctest.Wait()
		}
		if n := runtime.NumGoroutine() - goroutines; looks.Load() != 1 || n != 1 {
			t.Errorf("%d looks, %d goroutines", looks.Load(), n)
		}
		begun := time.Now()
		w.end(true)
		w.finish(time.Now())
		if late := w.late(); late != 1 || time.Since(begun) != 0 {
			t.Errorf("%d late, after %v", late, time.Since(begun))
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.late() != 0 || looks.Load() != 1 || w.now().Pid != 0 || told.get() != nil {
			t.Errorf("%d late, %d looks, %+v, told %v", w.late(), looks.Load(), w.now(), told.get())
		}
	})
}

// SPEC 3.24: what is new while the caller's function does not return is told when it does, and nothing after the end.
func TestTeller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told record
		release := make(chan struct{})
		tl := &teller{fns: []func(InputWait){told.add, func(InputWait) { <-release }}, fail: func(err error) { t.Error(err) }}
		a, b, c := InputWait{Pid: 1}, InputWait{Pid: 2}, InputWait{Pid: 3}
		for _, w := range []InputWait{a, b, {}, b, c, {}, a} {
			tl.tell(w)
			synctest.Wait()
		}
		release <- struct{}{}
		release <- struct{}{}
		release <- struct{}{}
		synctest.Wait()
		if diff := cmp.Diff([]InputWait{a, {}, a}, told.get()); diff != "" {
			t.Error(diff)
		}
		tl.tell(b)
		synctest.Wait()
		tl.tell(c)
		begun := time.Now()
		tl.finish(begun.Add(time.Second))
		if took := time.Since(begun); took != beginTime {
			t.Errorf("it waits for %v", took)
		}
		close(release)
		tl.tell(a)
		synctest.Wait()
		if diff := cmp.Diff([]InputWait{a, {}, a, b}, told.get()); diff != "" {
			t.Error(diff)
		}
	})
}

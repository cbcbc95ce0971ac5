package transcript_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var (
	certain  = procgroup.InputWait{Pid: 7, Certain: true, Prompt: "Name?"}
	probable = procgroup.InputWait{Pid: 7, Prompt: "Name?"}
)

// An event is what happens to a log at a time.
type event struct {
	at time.Duration
	do func(*logged)
}

// A logged job may wait for input.
type logged struct {
	*transcript.Log
	input atomic.Pointer[procgroup.InputWait]
	ready chan struct{}
}

func newLogged(size int) *logged {
	l := &logged{Log: transcript.New(size), ready: make(chan struct{})}
	l.Ready = l.ready
	l.input.Store(new(procgroup.InputWait))
	l.Input = func() procgroup.InputWait { return *l.input.Load() }
	return l
}

func out(s string) func(*logged) {
	return func(l *logged) { _, _ = l.Write([]byte(s)) }
}

func waits(w procgroup.InputWait) func(*logged) {
	return func(l *logged) {
		l.input.Store(&w)
		l.Changed()
	}
}

func ready(l *logged) { close(l.ready) }

func end(l *logged) { l.End() }

// SPEC 15.2: a wait ends at the first of what it names, to the nanosecond, and says which.
func TestWait(t *testing.T) {
	const s, ns = time.Second, time.Nanosecond
	everything := transcript.Until{Output: true, Silence: 10 * s, Match: regexp.MustCompile("ready"), Input: true}
	match := func(pattern string) transcript.Until {
		return transcript.Until{Match: regexp.MustCompile(pattern)}
	}
	for _, tt := range []struct {
		name   string
		events []event
		until  transcript.Until
		caller time.Duration // 0: a minute
		want   transcript.Wake
		at     time.Duration
	}{
		{"the end", []event{{s, out("a")}, {2 * s, waits(certain)}, {3 * s, end}}, transcript.Until{}, 0, transcript.End, 3 * s},
		{"the end before the wait", []event{{0, end}}, everything, 0, transcript.End, 0},
		{"the end before silence", []event{{10*s - ns, end}}, everything, 0, transcript.End, 10*s - ns},
		{"the end before the caller", []event{{10*s - ns, end}}, transcript.Until{}, 10 * s, transcript.End, 10*s - ns},
		{"the end after output that is new", []event{{0, out("a")}, {0, end}}, everything, 0, transcript.Output, 0},
		{"the end after output that is not", []event{{0, out("a")}, {0, end}}, transcript.Until{From: 1, Output: true}, 0, transcript.End, 0},
		{"the end after a match", []event{{s, func(l *logged) { out("ready")(l); end(l) }}}, match("^ready$"), 0, transcript.Match, s},

		{"the caller", nil, everything, 3 * s, transcript.Caller, 3 * s},
		{"the caller, done before", nil, everything, -1, transcript.Caller, 0},
		{"the caller, done before, and output", []event{{0, out("a")}}, everything, -1, transcript.Output, 0},
		{"the caller, done before, and the end", []event{{0, end}}, transcript.Until{}, -1, transcript.End, 0},

		{"output", []event{{s, out("a")}}, transcript.Until{Output: true}, 0, transcript.Output, s},
		{"output before the wait", []event{{0, out("a")}}, transcript.Until{Output: true}, 0, transcript.Output, 0},
		{"output that was read", []event{{0, out("abc")}, {2 * s, out("d")}}, transcript.Until{From: 3, Output: true}, 0, transcript.Output, 2 * s},
		{"output after a negative position", []event{{2 * s, out("a")}}, transcript.Until{From: -1, Output: true}, 0, transcript.Output, 2 * s},
		{"the end after no output and a negative position", []event{{0, end}}, transcript.Until{From: -1, Output: true}, 0, transcript.End, 0},
		{"output after a position that is too large", []event{{0, out("abc")}, {2 * s, out("d")}, {3 * s, out("e")}}, transcript.Until{From: 4, Output: true}, 0, transcript.Output, 3 * s},

		{"silence", nil, everything, 0, transcript.Silence, 10 * s},
		{"silence after output before the wait", []event{{0, out("a")}}, transcript.Until{Silence: 5 * s}, 0, transcript.Silence, 5 * s},
		{"silence after output", []event{{5*s - ns, out("a")}, {6 * s, out("b")}}, transcript.Until{Silence: 5 * s}, 0, transcript.Silence, 11 * s},
		{"no silence", []event{{5 * s, out("a")}}, transcript.Until{Silence: -1}, 7 * s, transcript.Caller, 7 * s},

		{"a match", []event{{s, out("not yet\nrea")}, {2 * s, out("dy\n")}}, match("^ready$"), 0, transcript.Match, 2 * s},
		{"a match before the wait", []event{{0, out("x\nready\ny\n")}}, match("^ready$"), 0, transcript.Match, 0},
		{"a match in an unfinished line", []event{{s, out("Password: ")}}, match(`(?i)password: ?$`), 0, transcript.Match, s},
		{"a match in colours", []event{{s, out("\x1b[32mrea")}, {2 * s, out("d\x1b[0my\r\n")}}, match("^ready$"), 0, transcript.Match, 2 * s},
		{"a match across a character", []event{{s, out("\xe6\x97")}, {2 * s, out("\xa5")}}, match("^日$"), 0, transcript.Match, 2 * s},
		{"no match in what was read", []event{{0, out("ready\n")}, {2 * s, out("x\n")}, {3 * s, out("ready\n")}}, transcript.Until{From: 6, Match: regexp.MustCompile("ready")}, 0, transcript.Match, 3 * s},
		{"no match of a line that was taken back", []event{{s, out("ready\rbusy\n")}, {2 * s, end}}, match("ready"), 0, transcript.End, 2 * s},
		{"a match before the wait of a caller without time", []event{{0, out("ready")}}, match("ready"), -1, transcript.Match, 0},
		{"no match of nothing", []event{{s, out("x\n")}, {2 * s, end}}, match("^$"), 0, transcript.End, 2 * s},
		{"no match of no output", []event{{s, end}}, match("^$"), 0, transcript.End, s},
		{"a match of an empty line", []event{{s, out("x")}, {2 * s, out("\n\n")}}, match("^$"), 0, transcript.Match, 2 * s},
		{"a match at the end of a long line", []event{{s, out(strings.Repeat("x", 1<<20) + "rea")}, {2 * s, out("dy")}}, match("ready"), 0, transcript.Match, 2 * s},
		{"no match across what was dropped", []event{{s, out("rea")}, {2 * s, out("zzdy\n" + strings.Repeat("x", 1<<20-3))}, {3 * s, end}}, match("ready"), 0, transcript.End, 3 * s},
		{"a match in the middle of a lot", []event{{s, out(strings.Repeat("x\n", 1<<18) + "ready\n" + strings.Repeat("x\n", 1<<17))}, {2 * s, end}}, match("ready"), 0, transcript.Match, s},
		{"no match of what was dropped", []event{{s, out("ready\n" + strings.Repeat("x\n", 1<<19))}, {2 * s, end}}, match("ready"), 0, transcript.End, 2 * s},

		{"a wait for input", []event{{s, waits(certain)}}, everything, 0, transcript.Input, s},
		{"readiness", []event{{s, func(l *logged) { ready(l); waits(certain)(l); end(l) }}}, transcript.Until{Ready: true, Input: true}, 0, transcript.Ready, s},
		{"readiness before the wait, and the end", []event{{0, ready}, {0, end}}, transcript.Until{Ready: true}, 0, transcript.Ready, 0},
		{"readiness that is not asked for", []event{{s, ready}}, transcript.Until{Silence: 5 * s}, 0, transcript.Silence, 5 * s},
		{"readiness that does not come", []event{{2 * s, end}}, transcript.Until{Ready: true}, 0, transcript.End, 2 * s},
		{"a wait for input that is not asked for", []event{{s, waits(certain)}}, transcript.Until{Silence: 5 * s}, 0, transcript.Silence, 5 * s},
		{"a wait for input that is only probable", []event{{s, waits(probable)}}, transcript.Until{Input: true}, 5 * s, transcript.Caller, 5 * s},
		{"a probable wait for input that becomes certain", []event{{s, waits(probable)}, {2 * s, waits(certain)}}, transcript.Until{Input: true}, 0, transcript.Input, 2 * s},
		{"a wait for input before the wait", []event{{0, waits(certain)}}, transcript.Until{Input: true}, 0, transcript.Input, 0},
		{"a wait for input that is over", []event{{0, waits(certain)}, {0, waits(procgroup.InputWait{})}}, transcript.Until{Input: true}, 5 * s, transcript.Caller, 5 * s},
		{"a wait for input before the end", []event{{0, waits(certain)}, {0, end}}, transcript.Until{Input: true}, 0, transcript.End, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				l := newLogged(1 << 20)
				for _, e := range tt.events {
					if e.at == 0 {
						e.do(l)
						continue
					}
					go func() {
						time.Sleep(e.at)
						e.do(l)
					}()
				}
				limit := tt.caller
				if limit == 0 {
					limit = time.Minute
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if got, at := l.Wait(ctx, tt.until), time.Since(begun); got != tt.want || at != tt.at {
					t.Errorf("%v at %v, want %v at %v", got, at, tt.want, tt.at)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// SPEC 6.2, for a wait for a job: its output is a heartbeat, and earlier output is none.
func TestOutputIsAHeartbeatOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := transcript.New(100)
		_, _ = l.Write([]byte("x"))
		for i := range 10 {
			time.AfterFunc(time.Duration(i)*time.Second, func() { _, _ = l.Write([]byte("x")) })
		}
		begun := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			if got := l.Wait(ctx, transcript.Until{}); got != transcript.Caller {
				t.Errorf("%v", got)
			}
			return ctx.Err()
		}, timeout.Config{Idle: 3 * time.Second})
		if took := time.Since(begun); !errors.Is(err, timeout.ErrIdle) || took != 12*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// SPEC 15.2: silence begins with the wait, at the earliest.
func TestSilenceBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := transcript.New(100)
		_, _ = l.Write([]byte("x"))
		time.Sleep(time.Minute)
		begun := time.Now()
		if got := l.Wait(t.Context(), transcript.Until{Silence: time.Second}); got != transcript.Silence || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", got, time.Since(begun))
		}
	})
}

// SPEC 15.2: each of many waits ends.
func TestManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := transcript.New(100)
		got := make(chan transcript.Wake)
		for range 100 {
			go func() { got <- l.Wait(t.Context(), transcript.Until{Output: true}) }()
			go func() { got <- l.Wait(t.Context(), transcript.Until{}) }()
		}
		synctest.Wait()
		_, _ = l.Write([]byte("x"))
		for range 100 {
			if w := <-got; w != transcript.Output {
				t.Fatalf("%v", w)
			}
		}
		l.End()
		for range 100 {
			if w := <-got; w != transcript.End {
				t.Fatalf("%v", w)
			}
		}
	})
}

// A brief context ends right after a wait has begun.
type brief struct {
	context.Context
	asked *int // how often whether it has ended
}

func (b brief) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (b brief) Err() error {
	if *b.asked++; *b.asked > 1 {
		return context.Canceled
	}
	return nil
}

// SPEC 15.2: the caller's time also ends the search in what is there already, and nothing is claimed of
// what was not searched.
func TestSearchIsGivenUp(t *testing.T) {
	l := transcript.New(1 << 20)
	_, _ = l.Write([]byte(strings.Repeat("x\n", 1<<18) + "ready\n"))
	l.End()
	until := transcript.Until{Match: regexp.MustCompile("ready")}
	asked := 0
	if got := l.Wait(brief{t.Context(), &asked}, until); got != transcript.Caller {
		t.Errorf("%v", got)
	}
	if got := l.Wait(t.Context(), until); got != transcript.Match {
		t.Errorf("%v with more time", got)
	}
}

package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const limit = 10 * time.Second

// stopped returns err as the *timeout.Error that it must be.
func stopped(t *testing.T, err error) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *timeout.Error", err, err)
	}
	return e
}

// counted counts how often a body is closed.
type counted struct {
	io.ReadCloser
	closed atomic.Int32
	gone   chan struct{}
}

func (c *counted) Close() error {
	if c.closed.Add(1) == 1 {
		close(c.gone)
	}
	return c.ReadCloser.Close()
}

// says returns a body that yields one byte after each pause, and then stays silent.
func says(pauses ...time.Duration) *counted {
	r, w := io.Pipe()
	c := &counted{ReadCloser: r, gone: make(chan struct{})}
	go func() {
		for _, d := range pauses {
			select {
			case <-time.After(d):
			case <-c.gone:
				return
			}
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	return c
}

// Guarantee 1, SPEC 3.1, 3.5, 9.1: the limit fires neither early nor late.
func TestSilence(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pauses []time.Duration
		bytes  int
		at     time.Duration // of the error
		gap    time.Duration
		msg    string
	}{
		{"nothing ever comes", nil, 0, limit, limit, "stream: stalled for 10s before the first chunk: 0 chunks in 10s"},
		{"a byte a nanosecond before the limit", []time.Duration{limit - 1}, 1, 2*limit - 1, limit, "stream: stalled for 10s between chunks: 1 chunk in 20s"},
		{"a byte a nanosecond after the limit", []time.Duration{limit + 1}, 0, limit, limit, "stream: stalled for 10s before the first chunk: 0 chunks in 10s"},
		{"each byte just in time", []time.Duration{limit - 1, limit - 1, limit - 1}, 3, 4*limit - 3, limit, "stream: stalled for 10s between chunks: 3 chunks in 40s"},
		{"the second a nanosecond late", []time.Duration{limit / 2, limit + 1}, 1, limit * 3 / 2, limit, "stream: stalled for 10s between chunks: 1 chunk in 15s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				rc := says(tc.pauses...)
				body := stream.Body(context.Background(), rc, limit, timeout.WithName("events"))
				got, err := io.ReadAll(body)
				if len(got) != tc.bytes || time.Since(start) != tc.at {
					t.Errorf("%d bytes, then %v after %v, want %d, %v", len(got), err, time.Since(start), tc.bytes, tc.at)
				}
				want := &timeout.Error{
					Kind: timeout.KindIdle, Tool: "events", Limit: limit, Elapsed: tc.at,
					SinceBeat: limit, LongestGap: tc.gap, Beats: uint64(tc.bytes),
				}
				e := stopped(t, err)
				if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(timeout.Error{}, "Stack", "Limits")); diff != "" {
					t.Error(diff)
				}
				if err.Error() != tc.msg {
					t.Errorf("message %q, want %q", err, tc.msg)
				}
				if _, again := body.Read(make([]byte, 1)); again != err {
					t.Errorf("the next Read returns %v, want the same", again)
				}
				_ = body.Close()
				if n := rc.closed.Load(); n != 1 {
					t.Errorf("closed %d times, want once", n)
				}
			})
		})
	}
}

// Guarantee 1: a byte at the very instant of the limit is too late, whichever goroutine runs first.
func TestByteAtTheLimit(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			body := stream.Body(context.Background(), says(limit, limit), limit)
			got, err := io.ReadAll(body)
			if !errors.Is(err, timeout.ErrIdle) || len(got) > 1 || time.Since(start) != limit {
				t.Errorf("%d bytes, then %v after %v", len(got), err, time.Since(start))
			}
		})
	}
}

// SPEC 9.1: there is no total. 10 000 chunks come, each half a limit after the previous one.
func TestNoTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := make([]time.Duration, 10_000)
		for i := range pauses {
			pauses[i] = limit / 2
		}
		body := stream.Body(context.Background(), says(pauses...), limit)
		got, err := io.ReadAll(body)
		if len(got) != len(pauses) || !errors.Is(err, timeout.ErrIdle) {
			t.Errorf("%d bytes, then %v", len(got), err)
		}
	})
}

// Guarantee 2: a slow reader does not make a stream silent, and each Read has the whole limit.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := stream.Body(context.Background(), says(0, limit-1, 4*limit-1), limit)
		p := make([]byte, 1)
		for i := range 2 {
			if _, err := body.Read(p); err != nil {
				t.Fatalf("read %d: %v", i, err)
			}
			time.Sleep(3 * limit)
		}
		// The third byte comes a nanosecond before the limit, counted from here.
		time.Sleep(limit)
		start := time.Now()
		if _, err := body.Read(p); err != nil {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(100 * limit)
		start = time.Now()
		_, err := body.Read(p)
		if e := stopped(t, err); e.Kind != timeout.KindIdle || time.Since(start) != limit || e.LongestGap != limit {
			t.Errorf("%v after %v, longest gap %v", err, time.Since(start), e.LongestGap)
		}
	})
}

type drip struct{ io.ReadCloser }

func (d drip) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, nil
}

// Guarantee 3, SPEC 4.4: a read of no bytes is not a chunk.
func TestReadsOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		body := stream.Body(context.Background(), drip{says()}, limit)
		_, err := body.Read(make([]byte, 1))
		if !errors.Is(err, timeout.ErrIdle) || time.Since(start) > limit+time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		body := stream.Body(context.Background(), says(), limit)
		defer body.Close()
		if n, err := body.Read(nil); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// SPEC 2.13: 0 means 2 min, on both sides of it, and a negative limit is none. A Config among
// the options replaces both.
func TestOtherLimits(t *testing.T) {
	for _, tc := range []struct {
		name        string
		idle, pause time.Duration
		silent      bool
	}{
		{"the default, before", 0, 2*time.Minute - 1, false},
		{"the default, after", 0, 2*time.Minute + 1, true},
		{"none", -1, 1000 * time.Hour, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := stream.Body(context.Background(), says(tc.pause), tc.idle)
				defer body.Close()
				if _, err := body.Read(make([]byte, 1)); errors.Is(err, timeout.ErrIdle) != tc.silent || err != nil != tc.silent {
					t.Errorf("error %v", err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		body := stream.Body(context.Background(), says(limit/2, limit/2, limit/2), 0, timeout.Config{Total: limit + 1, Idle: limit})
		if _, err := io.ReadAll(body); !errors.Is(err, timeout.ErrTotal) || time.Since(start) != limit+1 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Guarantee 8: a stream that ends or fails by itself does so as without the limit. The bubble would
// not end if anything was left.
func TestEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		r    io.Reader
		want string
		err  error
	}{
		{"end", bytes.NewReader([]byte("all")), "all", nil},
		{"end with the last bytes", iotest.DataErrReader(bytes.NewReader([]byte("all"))), "all", nil},
		{"error", iotest.ErrReader(broken), "", broken},
		{"bytes, then an error", io.MultiReader(bytes.NewReader([]byte("some")), iotest.ErrReader(broken)), "some", broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := stream.Body(context.Background(), io.NopCloser(tc.r), limit)
				got, err := io.ReadAll(body)
				if string(got) != tc.want || err != tc.err {
					t.Errorf("%q, %v, want %q, %v", got, err, tc.want, tc.err)
				}
			})
		})
	}
}

// Close may be called from another goroutine while a Read waits.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rc := says()
		body := stream.Body(context.Background(), rc, limit)
		time.AfterFunc(limit/2, func() {
			_ = body.Close()
			_ = body.Close()
		})
		start := time.Now()
		_, err := body.Read(make([]byte, 1))
		if err != io.ErrClosedPipe || time.Since(start) != limit/2 {
			t.Errorf("%v after %v, want what the body itself says", err, time.Since(start))
		}
		synctest.Wait()
		if n := rc.closed.Load(); n != 1 {
			t.Errorf("closed %d times, want once", n)
		}
	})
}

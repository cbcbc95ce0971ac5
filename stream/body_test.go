package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/heartbeat"
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

// A stop by the caller's context speaks of the stream, since that is what its reader waits for, and is in the error
// still.
func TestStopOfTheCallerNamesTheStream(t *testing.T) {
	errBudget := errors.New("the budget is used up")
	for _, how := range []struct {
		name   string
		during func(context.Context) (context.Context, context.CancelFunc)
		before bool // ctx has ended before the stream begins
		want   string
		kind   timeout.Kind
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, false, "stream: the caller's deadline passed after 3s", timeout.ErrTotal},
		{"deadline with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, 3*time.Second, errBudget)
		}, false, "stream: the caller's deadline passed after 3s: the budget is used up", timeout.ErrTotal},
		{"abort", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, false, "stream: aborted", timeout.ErrAborted},
		{"abort with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errBudget) })
			return ctx, func() { cancel(nil) }
		}, false, "stream: aborted: the budget is used up", timeout.ErrAborted},
		{"deadline that has passed", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, true, "stream: the caller's deadline has passed", timeout.ErrTotal},
	} {
		for name, read := range map[string]func(ctx context.Context) error{
			"Body": func(ctx context.Context) error {
				r, w := io.Pipe()
				defer w.Close()
				_, err := io.ReadAll(stream.Body(ctx, r, time.Minute))
				return err
			},
			"Transport": func(ctx context.Context) error {
				_, err := (&stream.Transport{Base: &server{script: []answer{deaf}}}).RoundTrip(get(ctx))
				return err
			},
			"Transport, body": func(ctx context.Context) error {
				res, err := (&stream.Transport{Base: &server{script: []answer{typed(200, "text/plain", "a", silence)}}}).RoundTrip(get(ctx))
				if err != nil {
					return err
				}
				defer res.Body.Close()
				_, err = io.ReadAll(res.Body)
				return err
			},
		} {
			t.Run(how.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := how.during(t.Context())
					defer cancel()
					if how.before {
						<-ctx.Done()
					}
					err := read(ctx)
					if err == nil || err.Error() != how.want || stopped(t, err).Kind != how.kind || timeout.ExitCode(err) != stopped(t, err).ExitCode() {
						t.Errorf("error is %v, want %q of %v", err, how.want, how.kind)
					}
				})
			})
		}
	}
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

// Guarantee 1, SPEC 2.13, 3.1, 3.5, 9.1: the limit fires neither early nor late, and there is no total.
func TestSilence(t *testing.T) {
	for _, tc := range []struct {
		name   string
		idle   time.Duration
		pauses []time.Duration
		bytes  int
		at     time.Duration // of the error
		msg    string
	}{
		{"nothing ever comes", limit, nil, 0, limit, "stream: stalled for 10s before the first chunk: 0 chunks in 10s"},
		{"a byte a nanosecond after the limit", limit, []time.Duration{limit + 1}, 0, limit, "stream: stalled for 10s before the first chunk: 0 chunks in 10s"},
		{"each byte a nanosecond before it", limit, []time.Duration{limit - 1, limit - 1, limit - 1}, 3, 4*limit - 3, "stream: stalled for 10s between chunks: 3 chunks in 40s"},
		{"the second a nanosecond late", limit, []time.Duration{limit / 2, limit + 1}, 1, limit * 3 / 2, "stream: stalled for 10s between chunks: 1 chunk in 15s"},
		{"the default", 0, []time.Duration{2*time.Minute - 1, 2*time.Minute + 1}, 1, 4*time.Minute - 1, "stream: stalled for 2m0s between chunks: 1 chunk in 4m0s"},
		{"ten thousand chunks", limit, slices.Repeat([]time.Duration{limit / 2}, 10_000), 10_000, 10_002 * limit / 2, "stream: stalled for 10s between chunks: 10000 chunks in 13h53m30s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				rc := says(tc.pauses...)
				body := stream.Body(context.Background(), rc, tc.idle)
				got, err := io.ReadAll(body)
				if len(got) != tc.bytes || time.Since(start) != tc.at {
					t.Errorf("%d bytes, then %v after %v, want %d, %v", len(got), err, time.Since(start), tc.bytes, tc.at)
				}
				idle := tc.idle
				if idle == 0 {
					idle = 2 * time.Minute
				}
				want := &timeout.Error{
					Kind:    timeout.ErrIdle,
					Limit:   idle,
					Figures: timeout.Figures{Elapsed: tc.at, SinceBeat: idle, LongestGap: idle, Beats: uint64(tc.bytes)},
				}
				if diff := cmp.Diff(want, stopped(t, err), cmpopts.IgnoreFields(timeout.Error{}, "Stack", "Limits")); diff != "" {
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

// Guarantee 2: a slow reader does not make a stream silent, and each Read has the whole limit.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := stream.Body(context.Background(), says(0, limit-1, 4*limit-1), limit)
		p := make([]byte, 1)
		for i := range 3 { // the third byte comes a nanosecond before the limit, counted from the Read
			if _, err := body.Read(p); err != nil {
				t.Fatalf("read %d: %v", i, err)
			}
			time.Sleep(3 * limit)
		}
		start := time.Now()
		_, err := body.Read(p)
		if e := stopped(t, err); e.Kind != timeout.ErrIdle || time.Since(start) != limit || e.LongestGap != limit {
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
		if n, err := body.Read(nil); n != 0 || err != nil || time.Since(start) > 0 {
			t.Errorf("into nothing: %d, %v", n, err)
		}
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, timeout.ErrIdle) || time.Since(start) > limit+time.Second {
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
				got, err := io.ReadAll(stream.Body(context.Background(), io.NopCloser(tc.r), limit))
				if string(got) != tc.want || err != tc.err {
					t.Errorf("%q, %v, want %q, %v", got, err, tc.want, tc.err)
				}
			})
		})
	}
}

// SPEC 2.13, 3.11, 3.12: the end of the context closes the stream, and is all that does without a limit.
func TestContext(t *testing.T) {
	cause := errors.New("the user left")
	cancelled := func(ctx context.Context, after time.Duration) context.Context {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(after, func() { cancel(cause) })
		return ctx
	}
	for _, tc := range []struct {
		name string
		idle time.Duration
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		kind timeout.Kind
		at   time.Duration
	}{
		{"cancelled", limit, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return cancelled(ctx, limit-1), func() {}
		}, timeout.ErrAborted, limit - 1},
		{"cancelled from the start", limit, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx = cancelled(ctx, 0)
			<-ctx.Done()
			return ctx, func() {}
		}, timeout.ErrAborted, 0},
		{"deadline", limit, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, limit-1)
		}, timeout.ErrTotal, limit - 1},
		{"deadline without a limit", -1, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 1000*time.Hour)
		}, timeout.ErrTotal, 1000 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				rc := says()
				ctx, cancel := tc.ctx(context.Background())
				defer cancel()
				_, err := stream.Body(ctx, rc, tc.idle).Read(make([]byte, 1))
				e := stopped(t, err)
				if e.Kind != tc.kind || time.Since(start) != tc.at {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), tc.kind, tc.at)
				}
				if tc.kind == timeout.ErrAborted && (!errors.Is(err, cause) || !errors.Is(err, context.Canceled)) {
					t.Errorf("%v is not the caller's", err)
				}
				synctest.Wait()
				if n := rc.closed.Load(); n != 1 {
					t.Errorf("closed %d times, want once", n)
				}
			})
		})
	}
}

// SPEC 3.7: a stop is final, even if the body has more bytes.
func TestStopStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		body := stream.Body(ctx, io.NopCloser(zeros{}), limit)
		if n, err := body.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		cancel()
		for range 2 {
			if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, timeout.ErrAborted) {
				t.Errorf("%d, %v", n, err)
			}
		}
	})
}

// Guarantee 4: the enclosing execution gets the beats, but not the holds.
func TestInsideAnExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			body := stream.Body(ctx, says(limit/2, limit/2, limit/2), 2*limit)
			defer body.Close()
			if _, err := io.ReadFull(body, make([]byte, 3)); err != nil {
				return err
			}
			if n := heartbeat.FromContext(ctx).Count(); n != 3 {
				t.Errorf("%d beats, want 3", n)
			}
			<-ctx.Done() // stuck between two reads
			return nil
		}, timeout.Config{Idle: limit})
		if e := stopped(t, err); e.Kind != timeout.ErrIdle || e.Elapsed != limit*5/2 {
			t.Errorf("%v after %v", err, e.Elapsed)
		}
	})
}

// SPEC 3.12, 3.14: the stream uses the clock of the enclosing execution, and ends exactly with its total.
func TestClock(t *testing.T) {
	for _, tc := range []struct {
		name        string
		total, idle time.Duration
		want        error
	}{
		{"the idle limit", 0, time.Hour, timeout.ErrIdle},
		{"the total", time.Hour, -1, timeout.ErrTotal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mock := clock.NewMock()
				err := timeout.Run(context.Background(), func(ctx context.Context) error {
					r, _ := io.Pipe()
					body := stream.Body(ctx, r, tc.idle)
					defer body.Close()
					done := make(chan error, 1)
					go func() {
						_, err := body.Read(make([]byte, 1))
						done <- err
					}()
					synctest.Wait()
					mock.Add(time.Hour - 1)
					synctest.Wait()
					if len(done) > 0 {
						t.Errorf("too early: %v", <-done)
					}
					mock.Add(1)
					return <-done
				}, timeout.Config{Total: tc.total}, timeout.WithClock(mock))
				if !errors.Is(err, tc.want) {
					t.Errorf("%+v", err)
				}
			})
		})
	}
}

type halves struct {
	io.ReadCloser
	bytes.Buffer
	half bool
}

func (h *halves) Read(p []byte) (int, error) { return h.ReadCloser.Read(p) }
func (h *halves) CloseWrite() error          { h.half = true; return nil }

// Guarantee 9: an upgraded connection can still be written to, which renews nothing.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type writer interface {
			io.Writer
			CloseWrite() error
		}
		conn := &halves{ReadCloser: says()}
		upgrade := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: conn}, nil
		})
		resp, err := (&stream.Transport{Base: upgrade, Idle: limit}).RoundTrip(get(context.Background()))
		if err != nil {
			t.Fatal(err)
		}
		body := resp.Body
		w := body.(writer)
		time.AfterFunc(limit/2, func() { _, _ = w.Write([]byte("x")) })
		start := time.Now()
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, timeout.ErrIdle) || time.Since(start) != limit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if err := w.CloseWrite(); err != nil || !conn.half || conn.String() != "x" {
			t.Errorf("%v, %q", err, conn.String())
		}
		whole := stream.Body(context.Background(), struct {
			io.ReadCloser
			io.Writer
		}{says(), io.Discard}, limit)
		defer whole.Close()
		if err := whole.(writer).CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
		plain := stream.Body(context.Background(), says(), limit)
		defer plain.Close()
		if _, ok := plain.(io.Writer); ok {
			t.Error("a plain body is a writer")
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestMisuse(t *testing.T) {
	var none context.Context
	for name, f := range map[string]func(){
		"nil body":    func() { stream.Body(context.Background(), nil, limit) },
		"nil context": func() { stream.Body(none, http.NoBody, limit) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, ok := recover().(*timeout.ConfigError); !ok {
					t.Error("no panic of a *timeout.ConfigError")
				}
			}()
			f()
		})
	}
}

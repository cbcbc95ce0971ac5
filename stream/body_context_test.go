package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.11, 3.12: the end of the context closes the stream.
func TestContext(t *testing.T) {
	cause := errors.New("the user left")
	for _, tc := range []struct {
		name string
		ctx  func(context.Context) context.Context
		kind timeout.Kind
		at   time.Duration
	}{
		{"cancelled", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(limit-1, func() { cancel(cause) })
			return ctx
		}, timeout.KindAborted, limit - 1},
		{"cancelled from the start", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			return ctx
		}, timeout.KindAborted, 0},
		{"deadline", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, limit-1)
			t.Cleanup(cancel)
			return ctx
		}, timeout.KindTotal, limit - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				rc := says()
				_, err := stream.Body(tc.ctx(context.Background()), rc, limit).Read(make([]byte, 1))
				e := stopped(t, err)
				if e.Kind != tc.kind || time.Since(start) != tc.at {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(start), tc.kind, tc.at)
				}
				if tc.kind == timeout.KindAborted && (!errors.Is(err, cause) || !errors.Is(err, context.Canceled)) {
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
			for range 3 {
				if _, err := body.Read(make([]byte, 1)); err != nil {
					return err
				}
			}
			if n := heartbeat.FromContext(ctx).Count(); n != 3 {
				t.Errorf("%d beats, want 3", n)
			}
			<-ctx.Done() // stuck between two reads
			return nil
		}, timeout.Config{Idle: limit})
		if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Elapsed != limit*5/2 {
			t.Errorf("%v after %v", err, e.Elapsed)
		}
	})
}

// The stream uses the clock of the enclosing execution.
func TestClock(t *testing.T) {
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		r, _ := io.Pipe()
		body := stream.Body(ctx, r, time.Hour)
		defer body.Close()
		done := make(chan error, 1)
		go func() {
			_, err := body.Read(make([]byte, 1))
			done <- err
		}()
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); mock.Add(time.Minute) {
			select {
			case err := <-done:
				return err
			default:
			}
		}
		return errors.New("the clock does not count")
	}, timeout.Config{}, timeout.WithClock(mock))
	if !errors.Is(err, timeout.ErrIdle) {
		t.Error(err)
	}
}

// SPEC 3.12, 3.14: on a custom clock the stream ends exactly with the total of the enclosing
// execution.
func TestTotalOnAClock(t *testing.T) {
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		r, w := io.Pipe()
		body := stream.Body(ctx, r, -1)
		defer body.Close()
		mock.Add(time.Hour - 1)
		go w.Write([]byte("x"))
		if n, err := body.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("before the total: %d, %v", n, err)
		}
		mock.Add(1)
		_, err := body.Read(make([]byte, 1))
		return err
	}, timeout.Config{Total: time.Hour}, timeout.WithClock(mock))
	var stopped *timeout.Error
	if !errors.As(err, &stopped) || stopped.Kind != timeout.KindTotal || stopped.Err == nil {
		t.Errorf("%+v", err)
	}
}

type halves struct {
	io.ReadCloser
	bytes.Buffer
	half bool
}

func (h *halves) Read(p []byte) (int, error) { return h.ReadCloser.Read(p) }
func (h *halves) CloseWrite() error          { h.half = true; return nil }

// Guarantee 9: an upgraded connection can still be written to.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &halves{ReadCloser: says()}
		body := stream.Body(context.Background(), conn, limit)
		w, ok := body.(interface {
			io.Writer
			CloseWrite() error
		})
		if !ok {
			t.Fatal("not a writer any more")
		}
		go func() {
			for range 3 { // writes renew nothing
				time.Sleep(limit / 2)
				_, _ = w.Write([]byte("x"))
			}
		}()
		start := time.Now()
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, timeout.ErrIdle) || time.Since(start) != limit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(limit)
		synctest.Wait()
		if err := w.CloseWrite(); err != nil || !conn.half || conn.String() != "xxx" {
			t.Errorf("%v, %q", err, conn.String())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, pw := io.Pipe()
		body := stream.Body(context.Background(), struct {
			io.ReadCloser
			io.Writer
		}{says(), pw}, limit)
		defer body.Close()
		if err := body.(interface{ CloseWrite() error }).CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
		plain := stream.Body(context.Background(), says(), limit)
		defer plain.Close()
		if _, ok := plain.(io.Writer); ok {
			t.Error("a plain body is a writer")
		}
	})
}

func TestPanics(t *testing.T) {
	var none context.Context
	for name, f := range map[string]func(){
		"nil body":    func() { stream.Body(context.Background(), nil, limit) },
		"nil context": func() { stream.Body(none, http.NoBody, limit) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// A limit may be over before the stream's own goroutine has run.
func TestOverAtOnce(t *testing.T) {
	for range 2000 {
		body := stream.Body(context.Background(), io.NopCloser(strings.NewReader("x")), 0, timeout.Config{Total: 1, Grace: 1})
		got, err := io.ReadAll(body)
		if len(got) > 1 || err != nil && !errors.Is(err, timeout.ErrTotal) {
			t.Fatalf("%q, %v", got, err)
		}
		_ = body.Close()
	}
}

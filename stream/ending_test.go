package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A stream is reopened after a temporary refusal, and ends with a final one.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		final  int // status, or 0 if the stream is reopened
	}{
		{"204", status(204), 204}, {"301", status(301), 301}, {"400", status(400), 400},
		{"401", status(401), 401}, {"403", status(403), 403}, {"404", status(404), 404},
		{"405", status(405), 405}, {"410", status(410), 410}, {"501", status(501), 501},
		{"202 with events", typed(202, "text/event-stream"), 202},
		{"json", typed(200, "application/json", "{}"), 200},
		{"no type", typed(200, "", "{}"), 200},
		{"408", status(408), 0}, {"409", status(409), 0}, {"425", status(425), 0}, {"429", status(429), 0},
		{"500", status(500), 0}, {"502", status(502), 0}, {"503", status(503), 0}, {"504", status(504), 0},
		{"no connection", refuses, 0}, {"no header", deaf, 0},
		{"type with parameters", typed(200, "Text/Event-Stream; charset=utf-8"), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events("data: a\n\n", silence), tc.answer, events("data: b\n\n")}}
				got, err := hear(t, s)
				var gone *stream.ReopenError
				if !errors.As(err, &gone) {
					t.Fatalf("error is %v", err)
				}
				want, requests := "data: a\n\ndata: b\n\n", 4
				if tc.final != 0 {
					want, requests = "data: a\n\n", 2
				}
				if got != want || len(s.asked) != requests {
					t.Errorf("%q with %d requests, want %q with %d", got, len(s.asked), want, requests)
				}
				if tc.final != 0 && (gone.StatusCode != tc.final || !errors.Is(err, timeout.ErrIdle)) {
					t.Errorf("%v (%d) because of %v, want %d because of the silence", err, gone.StatusCode, gone.Err, tc.final)
				}
			})
		})
	}
}

// The caller gets the first answer unchanged: nothing is retried before there is a stream.
func TestFirstAnswer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		status int
		err    error
		at     time.Duration
	}{
		{"refused", refuses, 0, errRefused, 0},
		{"no header", deaf, 0, timeout.ErrIdle, limit},
		{"405", status(405), 405, nil, 0},
		{"503", status(503), 503, nil, 0},
		{"json", typed(200, "application/json", "no"), 200, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &server{script: []answer{tc.answer}}
				resp, err := (&stream.Notifications{Base: s, Idle: limit}).RoundTrip(get(context.Background()))
				if !errors.Is(err, tc.err) || len(s.asked) != 1 || time.Since(start) != tc.at {
					t.Fatalf("%v after %v with %d requests", err, time.Since(start), len(s.asked))
				}
				if err != nil {
					return
				}
				got, err := io.ReadAll(resp.Body)
				if resp.StatusCode != tc.status || string(got) != "no" || err != nil {
					t.Errorf("%d, %q, %v", resp.StatusCode, got, err)
				}
				_ = resp.Body.Close()
			})
		})
	}
}

// A stream of the older transport is a session: it has the limit and is not reopened.
func TestEndpointStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &server{script: []answer{events(": hi\n\nevent: endpoint\ndata: /message?id=1\n\n", "event: message\ndata: a\n\n", silence)}}
		got, err := hear(t, s)
		if !errors.Is(err, timeout.ErrIdle) || len(s.asked) != 1 || time.Since(start) != limit {
			t.Errorf("%v after %v, %d requests", err, time.Since(start), len(s.asked))
		}
		if want := "event: endpoint\ndata: /message?id=1\n\nevent: message\ndata: a\n\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events("event: endpoint\ndata: /message\n\n")}}
		if _, err := hear(t, s); err != nil || len(s.asked) != 1 {
			t.Errorf("%v, %d requests, want its end", err, len(s.asked))
		}
	})
}

// Guarantee 6: cancelling the request and Close end the stream at any time.
func TestGivingUp(t *testing.T) {
	cause := errors.New("the user left")
	for _, tc := range []struct {
		name   string
		script []answer
		at     time.Duration
	}{
		{"while it is read", []answer{events("data: a\n\n", silence)}, limit / 2},
		{"while it waits to reopen", []answer{events()}, 499 * ms},
		{"while it waits for a header", []answer{events(), deaf}, 501 * ms},
		{"while it is read again", []answer{events(), events("data: b\n\n", silence)}, 501 * ms},
	} {
		for _, how := range []string{"cancel", "close"} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(context.Background())
					s := &server{script: tc.script}
					body := listen(t, ctx, s)
					start := time.Now()
					want := cause
					if how == "close" {
						want = http.ErrBodyReadAfterClose
					}
					time.AfterFunc(tc.at, func() {
						if how == "cancel" {
							cancel(cause)
							return
						}
						_ = body.Close()
					})
					_, err := io.Copy(io.Discard, body)
					if !errors.Is(err, want) || time.Since(start) != tc.at {
						t.Errorf("%v after %v, want %v after %v", err, time.Since(start), want, tc.at)
					}
					_ = body.Close()
					synctest.Wait()
					if s.open != 0 || len(s.asked) != len(tc.script) {
						t.Errorf("%d bodies open, %d requests", s.open, len(s.asked))
					}
				})
			})
		}
	}
}

// A base may answer although its context has been cancelled.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events(), func(s *server, req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return events("data: a\n\n", silence)(s, req.WithContext(context.Background()))
		}}}
		body := listen(t, context.Background(), s)
		time.AfterFunc(time.Second, func() { _ = body.Close() })
		got, err := io.ReadAll(body)
		synctest.Wait()
		if len(got) != 0 || err != http.ErrBodyReadAfterClose || s.open != 0 {
			t.Errorf("%q, %v, %d bodies open", got, err, s.open)
		}
	})
}

// Guarantee 6, SPEC 9.1: a request limit applies until the header has come, and no longer.
func TestRequestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		client := &http.Client{Transport: &stream.Notifications{Base: s, Idle: limit}, Timeout: limit / 2}
		for _, by := range []string{"client", "context"} {
			ctx, cancel := context.Background(), func() {}
			if by == "context" {
				ctx, cancel = context.WithTimeout(ctx, limit/4)
			}
			s.script = []answer{events(limit-1, "data: a\n\n", limit-1, "data: b\n\n")}
			resp, err := client.Do(get(ctx))
			if err != nil {
				t.Fatal(by, err)
			}
			got, err := io.ReadAll(resp.Body)
			// http.Client replaces the text of the error once its Timeout has passed.
			if string(got) != "data: a\n\ndata: b\n\n" || !strings.HasPrefix(err.Error(), "stream: not reopened: 204 No Content") {
				t.Errorf("%s: %q, %v", by, got, err)
			}
			_ = resp.Body.Close()
			cancel()
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit/4)
		defer cancel()
		s.script = []answer{deaf}
		if _, err := client.Transport.RoundTrip(get(ctx)); err != context.DeadlineExceeded {
			t.Errorf("%v, want the caller's own", err)
		}
		start := time.Now()
		s.script = []answer{deaf}
		if _, err := client.Do(get(context.Background())); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != limit/2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

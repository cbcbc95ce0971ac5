package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

// SPEC 9.1: 500 ms first, factor 1.2, at most 10 s.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events("data: a\n\n")}}
		for range 20 {
			s.script = append(s.script, refuses)
		}
		got, err := hear(t, s)
		var gone *stream.ReopenError
		if got != "data: a\n\n" || !errors.As(err, &gone) || gone.StatusCode != http.StatusNoContent {
			t.Errorf("%q, %v", got, err)
		}
		want := []time.Duration{0, 500 * ms, 600 * ms, 720 * ms, 864 * ms, 1036800 * time.Microsecond}
		if diff := cmp.Diff(want, s.asked[:6]); diff != "" {
			t.Error(diff)
		}
		if got := s.asked[17].Truncate(10 * ms); got != 9240*ms { // 500 ms times 1.2 to the 16th
			t.Errorf("17th wait is %v", got)
		}
		if diff := cmp.Diff(slices.Repeat([]time.Duration{10 * time.Second}, 4), s.asked[18:]); diff != "" {
			t.Error(diff)
		}
	})
}

// SPEC 9.1: the back-off begins afresh after a chunk, and after a silence.
func TestBackoffAfresh(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before answer
		want   time.Duration // the wait after it, where the one before was 600 ms
	}{
		{"after an event", events("data: b\n\n"), 500 * ms},
		{"after a byte", events(":"), 500 * ms},
		{"after a connection without one", events(), 720 * ms},
		{"after a connection that breaks", events(io.ErrUnexpectedEOF), 720 * ms},
		{"after a silence", events(silence), 500*ms + limit},
		{"after a header that did not come", deaf, 720*ms + limit},
		{"after a refusal", status(503), 720 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events("data: a\n\n"), refuses, tc.before}}
				_, _ = hear(t, s)
				if diff := cmp.Diff([]time.Duration{0, 500 * ms, 600 * ms, tc.want}, s.asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The server's retry field is respected, within bounds.
func TestRetryField(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"retry: 2000":                   2000 * ms,
		"retry:2000":                    2000 * ms,
		"retry: 100":                    100 * ms,
		"retry: 99":                     100 * ms,
		"retry: 0":                      100 * ms,
		"retry: 10000":                  10 * time.Second,
		"retry: 10001":                  10 * time.Second,
		"retry: 99999999999999999999":   10 * time.Second,
		"retry: 1e3":                    500 * ms,
		"retry: -1":                     500 * ms,
		"retry:":                        500 * ms,
		"Retry: 2000":                   500 * ms,
		"retry: 2000\ndata: not ended":  2000 * ms,
		"retry: 2000\n\nretry: 300\n\n": 300 * ms,
	} {
		t.Run(field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events(field + "\n"), refuses}}
				_, _ = hear(t, s)
				if diff := cmp.Diff([]time.Duration{0, want, min(want+want/5, 10*time.Second)}, s.asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// SPEC 9.1: a stream that goes silent is found within the limit, both sides of it.
func TestSilenceIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{
			events(limit-1, "data: a\n\n", limit-1, ": alive\n\n", limit-1, "data: b\n\n", silence),
			events(limit+1, "data: too late\n\n"),
			events(limit-1, "data: c\n\n"),
		}}
		got, _ := hear(t, s)
		if want := "data: a\n\ndata: b\n\ndata: c\n\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		want := []time.Duration{0, 4*limit - 3 + 500*ms, limit + 500*ms, limit - 1 + 500*ms}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Error(diff)
		}
	})
}

// Guarantee 5: the reader sees each whole event once, and the server is told where to go
// on.
func TestWholeEvents(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script []answer
		want   string
		ids    []string // Last-Event-ID of each request
	}{
		{"an event cut off, and sent again", []answer{
			events("id: 1\ndata: a\n\nid: 2\ndata: b"), events("id: 2\ndata: bb\n\n"),
		}, "id: 1\ndata: a\n\nid: 2\ndata: bb\n\n", []string{"", "1", "2"}},
		{"cut off before its empty line", []answer{
			events("id: 1\ndata: a\n"), events("id: 1\ndata: a\n\n"),
		}, "id: 1\ndata: a\n\n", []string{"", "", "1"}},
		{"broken, not ended", []answer{
			events("id: 1\ndata: a\n\n", "data: b", io.ErrUnexpectedEOF), events("data: c\n\n"),
		}, "id: 1\ndata: a\n\ndata: c\n\n", []string{"", "1", "1"}},
		{"bytes one by one", []answer{
			events("i", "d", ":", "7", "\r", "\n", "d", "a", "t", "a", ":", "a", "\r", "\n", "\r", "\n", "d"),
		}, "id:7\ndata:a\n\n", []string{"", "7"}},
		{"an id without data", []answer{events("id: 3\nretry: 500\n\n")}, "id: 3\nretry: 500\n\n", []string{"", "3"}},
		{"an id taken back", []answer{events("id: 3\ndata: a\n\nid\ndata: b\n\n")}, "id: 3\ndata: a\n\nid\ndata: b\n\n", []string{"", ""}},
		{"an id with NUL", []answer{events("id: 3\ndata: a\n\nid: 4\x00\ndata: b\n\n")}, "id: 3\ndata: a\n\nid: 4\x00\ndata: b\n\n", []string{"", "3"}},
		{"an id that no header can hold", []answer{events("id: \x01\ndata: a\n\n")}, "id: \x01\ndata: a\n\n", []string{"", ""}},
		{"comments", []answer{events(": hello\n\n:\n", "data: a\n: in between\ndata: b\n\n", ": and", " half")}, "data: a\ndata: b\n\n", []string{"", ""}},
		{"byte order marks", []answer{
			events("\xef", "\xbb\xbfdata: a\n\n"), events("\xef\xbb\xbf: b\ndata: b\n\n"), events("\xef\xbbdata: c\n\n"),
		}, "data: a\n\ndata: b\n\n\xef\xbbdata: c\n\n", []string{"", "", "", ""}},
		{"lines that end in CR", []answer{events("data: a\r", "\r", "data: b\r\r")}, "data: a\n\ndata: b\n\n", []string{"", ""}},
		{"empty lines", []answer{events("\n\n\r\n\ndata: a\n\n\n\n")}, "data: a\n\n", []string{"", ""}},
		{"an id that the server does not know any more", []answer{
			events("id: 1\ndata: a\n\n"), status(400), events("data: b\n\n", silence), events("id: 3\ndata: c\n\n"), status(400), status(400),
		}, "id: 1\ndata: a\n\ndata: b\n\nid: 3\ndata: c\n\n", []string{"", "1", "", "", "3", ""}},
		{"a LF that belongs to no CR", []answer{
			events("data: a\n\n\r"), events("\n\xef\xbb\xbfdata: b\n\n"),
		}, "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"", "", ""}},
		{"a CR and a LF on two connections", []answer{events("data: a\n\r"), events("\ndata: b\n\n")}, "data: a\n\ndata: b\n\n", []string{"", "", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: tc.script}
				got, err := hear(t, s)
				if got != tc.want {
					t.Errorf("%q, want %q", got, tc.want)
				}
				var gone *stream.ReopenError
				if !errors.As(err, &gone) || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%v, want a refusal after an unexpected end", err)
				}
				if diff := cmp.Diff(tc.ids, s.lastID); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// An event that is whole is given out before anything is waited for.
func TestNothingIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{
			func(s *server, req *http.Request) (*http.Response, error) {
				resp, err := events()(s, req)
				resp.Body = struct {
					io.Reader
					io.Closer
				}{&lastWords{}, resp.Body}
				return resp, err
			},
		}}
		start := time.Now()
		body := listen(t, context.Background(), s)
		defer body.Close()
		p := make([]byte, 100)
		if n, err := body.Read(p); string(p[:n]) != "data: a\n\n" || err != nil || time.Since(start) != 0 {
			t.Errorf("%q, %v after %v", p[:n], err, time.Since(start))
		}
	})
}

type lastWords struct{}

func (*lastWords) Read(p []byte) (int, error) { return copy(p, "data: a\n\n"), io.EOF }

// What ends a stream, and what does not.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		final  int // status, 0 where it is tried again
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

// What the first request gets is the caller's: nothing is tried again before there is a
// stream.
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

// The old transport's stream is a session: it is limited, and not reopened.
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

// Memory is bounded, to the byte.
func TestEventTooLarge(t *testing.T) {
	big := "data:" + strings.Repeat("x", stream.MaxEvent-5)
	synctest.Test(t, func(t *testing.T) {
		got, err := hear(t, &server{script: []answer{events(big, "\n\n")}})
		var gone *stream.ReopenError
		if got != big+"\n\n" || !errors.As(err, &gone) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events("data: a\n\n", big, "y")}}
		got, err := hear(t, s)
		if got != "data: a\n\n" || err != stream.ErrEventTooLarge || len(s.asked) != 1 {
			t.Errorf("%d bytes, %v, %d requests", len(got), err, len(s.asked))
		}
	})
	synctest.Test(t, func(t *testing.T) { // a comment is not kept
		got, _ := hear(t, &server{script: []answer{events("data: a\n:", big, big, "\n\n")}})
		if got != "data: a\n\n" {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Guarantee 6: cancelling the request ends the stream at any time, and so does Close.
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

// A base that answers all the same, when nobody wants the answer any more.
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

// Guarantee 6, SPEC 9.1: a request limit holds up to the header and not beyond.
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
			// http.Client makes a text of the error, once its time is over.
			if string(got) != "data: a\n\ndata: b\n\n" || !strings.HasPrefix(err.Error(), "stream: not reopened: 204 No Content") {
				t.Errorf("%s: %q, %v", by, got, err)
			}
			_ = resp.Body.Close()
			cancel()
		}
		start := time.Now()
		s.script = []answer{deaf}
		if _, err := client.Do(get(context.Background())); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != limit/2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Guarantee 7: what is nobody's stream is not touched: the base gets the very request.
func TestOtherRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		taken  bool
	}{
		{"the stream of notifications", func(*http.Request) {}, true},
		{"among other types", func(r *http.Request) { r.Header.Set("Accept", "application/json, text/event-stream;q=0.5") }, true},
		{"no method", func(r *http.Request) { r.Method = "" }, true},
		{"POST", func(r *http.Request) { r.Method = http.MethodPost }, false},
		{"DELETE", func(r *http.Request) { r.Method = http.MethodDelete }, false},
		{"somebody's own reconnect", func(r *http.Request) { r.Header.Set("Last-Event-ID", "3") }, false},
		{"json", func(r *http.Request) { r.Header.Set("Accept", "application/json") }, false},
		{"anything", func(r *http.Request) { r.Header.Set("Accept", "*/*") }, false},
		{"no Accept", func(r *http.Request) { r.Header.Del("Accept") }, false},
		{"a body", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				req := get(context.Background())
				tc.change(req)
				before := req.Clone(context.Background())
				var seen *http.Request
				s := &server{script: []answer{func(s *server, r *http.Request) (*http.Response, error) {
					seen = r
					return events("data: a\n\n", 100*limit, ":\n\n")(s, r)
				}}}
				resp, err := (&stream.Notifications{Base: s, Idle: limit}).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if taken := seen != req; taken != tc.taken {
					t.Errorf("taken: %v", taken)
				}
				if !tc.taken && (string(got) != "data: a\n\n:\n\n" || err != nil) {
					t.Errorf("%q, %v", got, err)
				}
				if tc.taken && resp.Request != req {
					t.Error("the response is for another request")
				}
				if diff := cmp.Diff(before.Header, req.Header); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// An encoded stream cannot be read here, so it is limited and left as it is.
func TestEncodedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{func(s *server, r *http.Request) (*http.Response, error) {
			resp, err := events("\x1f\x8b", silence)(s, r)
			resp.Header.Set("Content-Encoding", "gzip")
			return resp, err
		}}}
		got, err := hear(t, s)
		if got != "\x1f\x8b" || !errors.Is(err, timeout.ErrIdle) || len(s.asked) != 1 {
			t.Errorf("%q, %v, %d requests", got, err, len(s.asked))
		}
	})
}

// What the reader does not ask for is not done.
func TestNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events("data: a\n\n")}}
		body := listen(t, context.Background(), s)
		p := make([]byte, 4)
		if n, err := body.Read(p); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := body.Read(nil); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		time.Sleep(100 * limit)
		if len(s.asked) != 1 {
			t.Errorf("%d requests", len(s.asked))
		}
		_ = body.Close()
	})
}

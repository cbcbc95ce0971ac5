package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

// A hearing is a stream of notifications that is read to its end.
type hearing struct {
	name   string
	n      stream.Notifications // with the limit as its Idle
	script []answer
	got    string
	brief  bool            // got is without "data: " and \n
	asked  []time.Duration // before each request; nil is not compared
	ids    []string        // Last-Event-ID of each request; nil is not compared
	// stopped is what ended it. nil is the refusal after the script, after a connection that has ended.
	stopped func(error) bool
}

func refused(err error) bool {
	var gone *stream.ReopenError
	return errors.As(err, &gone) && gone.StatusCode == http.StatusNoContent
}

func (h *hearing) run(t *testing.T) {
	t.Run(h.name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{script: h.script}
			n := h.n
			n.Base, n.Idle = s, limit
			got, err := fetch(&http.Client{Transport: &n}, get(context.Background()))
			if h.brief {
				got = strings.NewReplacer("data: ", "", "\n", "").Replace(got)
			}
			if got != h.got || s.open != 0 {
				t.Errorf("%q, want %q; %d bodies open", got, h.got, s.open)
			}
			if diff := cmp.Diff(h.asked, s.asked); h.asked != nil && diff != "" {
				t.Errorf("asked: %s", diff)
			}
			if diff := cmp.Diff(h.ids, s.lastID); h.ids != nil && diff != "" {
				t.Errorf("ids: %s", diff)
			}
			if stopped := h.stopped; stopped != nil && !stopped(err) || stopped == nil && !refused(err) {
				t.Errorf("error is %v (%T)", err, err)
			}
		})
	})
}

// Guarantee 5: a stream goes on without an id that the server refuses, once. FuzzEvents has what two connections can say.
func TestUnknownID(t *testing.T) {
	for _, h := range []hearing{
		{name: "an id that the server does not know any more", script: []answer{
			events("id: 1\ndata: a\n\n"), status(400), events("data: b\n\n", silence), events("id: 3\ndata: c\n\n"), status(400), status(400),
		}, got: "id: 1\ndata: a\n\ndata: b\n\nid: 3\ndata: c\n\n", ids: []string{"", "1", "", "", "3", ""}, stopped: func(err error) bool {
			var gone *stream.ReopenError
			return errors.As(err, &gone) && gone.StatusCode == 400 && errors.Is(err, io.ErrUnexpectedEOF)
		}},
	} {
		h.run(t)
	}
}

// A stream is reopened after a temporary refusal, and ends with a final one.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		final  int // status, or 0 if the stream is reopened
	}{
		{"204", status(204), 204}, {"301", status(301), 301}, {"400", status(400), 400}, {"404", status(404), 404}, {"410", status(410), 410}, {"501", status(501), 501},
		{"202 with events", typed(202, "text/event-stream"), 202},
		{"json", typed(200, "application/json", "{}"), 200},
		{"no type", typed(200, "", "{}"), 200},
		{"408", status(408), 0}, {"409", status(409), 0}, {"425", status(425), 0}, {"429", status(429), 0}, {"500", status(500), 0}, {"503", status(503), 0},
		{"no connection", refuses, 0}, {"no header", deaf, 0},
		{"type with parameters", typed(200, "Text/Event-Stream; charset=utf-8"), 0},
	} {
		h := hearing{name: tc.name, script: []answer{events("data: a\n\n", silence), tc.answer, events("data: b\n\n")}, brief: true, got: "ab", ids: make([]string, 4)}
		if tc.final != 0 {
			h.got, h.ids, h.stopped = "a", make([]string, 2), func(err error) bool {
				var gone *stream.ReopenError
				return errors.As(err, &gone) && gone.StatusCode == tc.final && errors.Is(err, timeout.ErrIdle)
			}
		}
		h.run(t)
	}
}

// A stream of the older transport is a session: it has the limit and is not reopened.
func TestEndpointStream(t *testing.T) {
	const open = "event: endpoint\ndata: /message?id=1\n\n"
	for _, h := range []hearing{
		{name: "silent", script: []answer{events(": hi\n\n"+open, "event: message\ndata: a\n\n", silence)}, got: open + "event: message\ndata: a\n\n",
			ids: []string{""}, stopped: func(err error) bool { return errors.Is(err, timeout.ErrIdle) }},
		{name: "ended", script: []answer{events(open)}, got: open, ids: []string{""}, stopped: func(err error) bool { return err == nil }},
		{name: "a name cut off, which is not that of the next event", script: []answer{events("event: endpoint\n"), events("data: a\n\n")},
			got: "data: a\n\n", ids: []string{"", "", ""}},
	} {
		h.run(t)
	}
}

// Memory is bounded, exact to the byte.
func TestEventTooLarge(t *testing.T) {
	big := "data:" + strings.Repeat("x", 16<<20-5)
	for _, h := range []hearing{
		{name: "the largest", script: []answer{events(big, "\n\n")}, got: big + "\n\n"},
		{name: "one byte more", script: []answer{events("data: a\n\n", big, "y")}, brief: true, got: "a", ids: []string{""},
			stopped: func(err error) bool { return err == stream.ErrEventTooLarge }},
		{name: "a comment, which is not kept", script: []answer{events("data: a\n:", big, big, "\n\n")}, got: "data: a\n\n"},
	} {
		h.run(t)
	}
}

// An encoded stream cannot be parsed, so it is limited but not reopened.
func TestEncodedStream(t *testing.T) {
	h := hearing{name: "gzip", got: "\x1f\x8b", ids: []string{""}, stopped: func(err error) bool { return errors.Is(err, timeout.ErrIdle) },
		script: []answer{func(s *server, r *http.Request) (*http.Response, error) {
			resp, err := events("\x1f\x8b", silence)(s, r)
			resp.Header.Set("Content-Encoding", "gzip")
			return resp, err
		}}}
	h.run(t)
}

// Guarantee 6, SPEC 9.1: a request limit applies until the header has come, and no longer.
func TestRequestLimit(t *testing.T) {
	said := events(limit-1, "data: a\n\n", limit-1, "data: b\n\n")
	for _, tc := range []struct {
		name            string
		answer          answer
		client, context time.Duration
		got, message    string
		at              time.Duration
	}{
		{"of the client, after it", said, limit / 2, time.Hour, "data: a\n\ndata: b\n\n", "stream: not reopened: 204 No Content", 2*limit - 2 + 500*ms},
		{"of the context, after it", said, 0, limit / 4, "data: a\n\ndata: b\n\n", "stream: not reopened: 204 No Content", 2*limit - 2 + 500*ms},
		{"of the client, before it", deaf, limit / 2, time.Hour, "", `Get "http://server.test/mcp": context deadline exceeded`, limit / 2},
		{"of the context, before it", deaf, 0, limit / 4, "", `Get "http://server.test/mcp": context deadline exceeded`, limit / 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{tc.answer}}
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					//lint:ignore SA1019 it is what the client's Timeout sets, and net/http would heed it
					if r.Cancel != nil {
						t.Error("the client's Timeout reaches the base")
					}
					return s.RoundTrip(r)
				})
				ctx, cancel := context.WithTimeout(context.Background(), tc.context)
				defer cancel()
				start := time.Now()
				got, err := fetch(&http.Client{Transport: &stream.Notifications{Base: base, Idle: limit}, Timeout: tc.client}, get(ctx))
				// http.Client adds to the text of the error once its Timeout has passed.
				if got != tc.got || err == nil || !strings.HasPrefix(err.Error(), tc.message) || time.Since(start) != tc.at {
					t.Errorf("%q, %v after %v", got, err, time.Since(start))
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

// Guarantee 6: an answer that comes although its context has been cancelled is closed.
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

// A whole event is returned before any wait for the next connection.
func TestNothingIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := listen(t, context.Background(), &server{script: []answer{func(s *server, req *http.Request) (*http.Response, error) {
			resp, err := events()(s, req)
			resp.Body = io.NopCloser(iotest.DataErrReader(strings.NewReader("data: a\n\n")))
			return resp, err
		}}})
		defer body.Close()
		start, p := time.Now(), make([]byte, 100)
		if n, err := body.Read(p); string(p[:n]) != "data: a\n\n" || err != nil || time.Since(start) != 0 {
			t.Errorf("%q, %v after %v", p[:n], err, time.Since(start))
		}
	})
}

// Guarantee 7: the base gets every other request unchanged.
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
		{"the client's own reconnect", func(r *http.Request) { r.Header.Set("Last-Event-ID", "3") }, false},
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

// Nothing happens while no Read is pending.
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

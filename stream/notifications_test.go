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

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

// Guarantee 5: the reader gets each whole event once, and each request has the id to continue from.
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
		{"a name cut off, which is not that of the next", []answer{
			events("event: endpoint\n"), events("data: a\n\n"),
		}, "data: a\n\n", []string{"", "", ""}},
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

// A whole event is returned before any wait.
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

// Memory is bounded, exact to the byte.
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

// An encoded stream cannot be parsed, so it is limited but not reopened.
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

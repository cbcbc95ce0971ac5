package stream_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The stream of a session that its client ends is not lost: the server ends it before the client has closed it.
func TestSessionThatEnds(t *testing.T) {
	for _, tc := range []struct {
		name            string
		session, ending string // of the stream, and of the DELETE
		other           bool   // the DELETE passes through another Notifications
		lost            bool
	}{
		{"its own", "a", "a", false, false},
		{"through another client", "a", "a", true, false},
		{"another one", "a", "b", false, true},
		{"none", "", "", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				lost := 0
				server, client := io.Pipe()
				base := roundTrips(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodDelete {
						_ = client.Close() // the server ends the stream, and answers later
						time.Sleep(time.Second)
						return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: server}, nil
				})
				n := &stream.Notifications{
					Base: base, Hooks: stream.Hooks{Lost: func(context.Context, stream.Outage) { lost++ }}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Backoff: stream.Backoff{First: time.Hour, Max: time.Hour},
				}
				request := func(n *stream.Notifications, ctx context.Context, method, session string) *http.Response {
					req, err := http.NewRequestWithContext(ctx, method, "http://server/mcp", nil)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Accept", "text/event-stream")
					if session != "" {
						req.Header.Set("Mcp-Session-Id", session)
					}
					resp, err := n.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				ctx, cancel := context.WithCancel(t.Context())
				resp := request(n, ctx, http.MethodGet, tc.session)
				ended := make(chan error, 1)
				go func() {
					_, err := io.Copy(io.Discard, resp.Body)
					ended <- err
				}()
				synctest.Wait()
				through := n
				if tc.other {
					through = &stream.Notifications{Base: base}
				}
				_ = request(through, t.Context(), http.MethodDelete, tc.ending)
				cancel()
				if err := <-ended; err != context.Canceled {
					t.Errorf("the reader got %v", err)
				}
				if (lost > 0) != tc.lost || strings.Contains(log.String(), "lost") != tc.lost {
					t.Errorf("lost %d times, and the log is %q", lost, log.String())
				}
			})
		})
	}
}

// A stream that its client does not close ends all the same.
func TestSessionThatEndsWithoutAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := io.Pipe()
		n := &stream.Notifications{GiveUp: time.Hour, Base: roundTrips(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete {
				_ = client.Close()
				return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: server}, nil
		})}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://server/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {"a"}}
			resp, err := n.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if method == http.MethodGet {
				defer func() {
					begun := time.Now()
					if _, err := io.ReadAll(resp.Body); err != nil || time.Since(begun) != 10*time.Second {
						t.Errorf("%v after %v", err, time.Since(begun))
					}
					_ = resp.Body.Close()
				}()
			}
		}
	})
}

package stream_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

// The stream of a session that its client ends is not lost: the server ends it before the client has closed it, which
// has 10 s for that.
func TestSessionThatEnds(t *testing.T) {
	for _, tc := range []struct {
		name            string
		session, ending string // of the stream, and of the DELETE
		other           bool   // the DELETE passes through another Notifications
		stays           bool   // the client does not close the stream
		lost            bool
		at              time.Duration
		want            error
	}{
		{"its own", "a", "a", false, false, false, time.Second, context.Canceled},
		{"through another client", "a", "a", true, false, false, time.Second, context.Canceled},
		{"another one", "a", "b", false, false, true, time.Second, context.Canceled},
		{"none", "", "", false, false, true, time.Second, context.Canceled},
		{"it is not closed", "a", "a", false, true, false, 10 * time.Second, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				server, client := io.Pipe()
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodDelete {
						_ = client.Close() // the server ends the stream, and answers later
						time.Sleep(time.Second)
						return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: server}, nil
				})
				request := func(n *stream.Notifications, ctx context.Context, method, session string) *http.Response {
					req := get(ctx)
					req.Method = method
					if session != "" {
						req.Header.Set("Mcp-Session-Id", session)
					}
					resp, err := n.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				n := &stream.Notifications{Base: base, Logger: slog.New(slog.NewTextHandler(&log, nil)), Backoff: stream.Backoff{First: time.Hour}}
				ctx, cancel := context.WithCancel(t.Context())
				resp := request(n, ctx, http.MethodGet, tc.session)
				ended := make(chan error, 1)
				go func() {
					_, err := io.Copy(io.Discard, resp.Body)
					ended <- err
				}()
				start, through := time.Now(), n
				if tc.other {
					through = &stream.Notifications{Base: base}
				}
				_ = request(through, t.Context(), http.MethodDelete, tc.ending)
				if !tc.stays {
					cancel()
				}
				if err := <-ended; err != tc.want || time.Since(start) != tc.at {
					t.Errorf("the reader got %v after %v", err, time.Since(start))
				}
				cancel()
				if lost := log.Len() > 0; lost != tc.lost {
					t.Errorf("the log is %q", &log)
				}
			})
		})
	}
}

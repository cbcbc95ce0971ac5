package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/stream"
)

const (
	ReopenDelay = 500 * time.Millisecond // least delay before the stream of a request is resumed
	MaxResumes  = 10                     // most attempts to resume the stream of a request until an event comes
	listenDelay = 5 * time.Second        // delay between two attempts to open the notification stream
)

// get opens the stream that continues after the event with the id last. If last is "", it opens the notification
// stream, which the transport of package stream reopens. The error is a *stream.ReopenError if the response is not a
// stream.
func (u *remote) get(ctx context.Context, last string) (*http.Response, error) {
	res, err := u.do(ctx, http.MethodGet, nil, "Last-Event-ID", last)
	if err != nil {
		return nil, err
	}
	if !isEvents(res) || res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, &stream.ReopenError{StatusCode: res.StatusCode, ContentType: res.Header.Get("Content-Type")}
	}
	return res, nil
}

// isRefusal reports whether err means that the server would refuse the stream again at the next attempt: err is a
// redirect that is not followed, or a response with a status below 500 other than 408, 425 and 429.
func isRefusal(err error) bool {
	elsewhere, refused := (*redirectError)(nil), (*stream.ReopenError)(nil)
	switch {
	case errors.As(err, &elsewhere):
		return true
	case !errors.As(err, &refused):
		return false
	}
	switch refused.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return refused.StatusCode < 500
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// listen forwards the messages of the notification stream of a session, and opens it again when it ends, until the
// session ends or the server refuses the stream. SPEC 9.1.
func (u *remote) listen(session string) {
	defer u.posts.Done()
	opened := false
	for u.current() == session {
		res, err := u.get(u.ctx, "")
		if err == nil {
			opened = true
			e := &exchange{remote: u, m: new(jsonrpc.Message), settled: func() {}}
			for event, failed := range stream.Events(res.Body, u.max) {
				err = failed
				e.take(u.ctx, event.Data)
			}
			res.Body.Close()
			if moved := (*stream.ReopenError)(nil); errors.As(err, &moved) && moved.StatusCode < 400 {
				err = nil // a redirect; the next get follows it
			}
		}
		if gone := (*stream.ReopenError)(nil); opened && errors.As(err, &gone) && gone.StatusCode == http.StatusNotFound {
			// An open stream shows that the server has known the session. A server that soon forgets each one gets a
			// new one only when the last is old enough.
			if (u.worthRenewing() || pause(u.ctx, time.Until(u.begun.Add(oldEnough)))) && u.current() == session {
				u.forget(true)
			}
			return
		}
		if isRefusal(err) { // the server has no notification stream
			if elsewhere := (*redirectError)(nil); errors.As(err, &elsewhere) {
				u.Log.Warn("no notification stream", "error", err)
			}
			return
		}
		if !pause(u.ctx, listenDelay) {
			return
		}
	}
}

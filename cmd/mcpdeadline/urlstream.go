package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

const (
	reopenDelay = 500 * time.Millisecond // before the stream of a request is resumed, or longer if the server asks for it
	maxResumes  = 10                     // of the stream of a request, without an event
	listenDelay = 5 * time.Second        // between two attempts to open the notification stream
)

// follow passes on the stream that answers a request. If the stream ends too early and its events
// have ids, follow resumes it. Package stream does not: it leaves the streams of calls to their
// clients, and this one gives up with an answer to the call.
func (u *remote) follow(ctx context.Context, m *message, res *http.Response) {
	last, retry, tries := "", time.Duration(0), 0
	for {
		err := errors.New("the server closed the stream before it answered")
		for e, failed := range stream.Events(res.Body, u.max) {
			if failed != nil {
				err = failed
				break
			}
			last, retry, tries = cmp.Or(e.ID, last), cmp.Or(e.Retry, retry), 0
			if len(e.Data) > 0 {
				u.took(m, res, e.Data)
			}
		}
		u.mu.Lock()
		_, open := u.open[string(m.ID)]
		u.mu.Unlock()
		if !m.isRequest() || !open || ctx.Err() != nil {
			return
		}
		for next := (*http.Response)(nil); next == nil; {
			if tries++; last == "" || tries > maxResumes || errors.Is(err, stream.ErrEventTooLarge) {
				u.fail(ctx, m, err)
				return
			}
			if !pause(ctx, max(retry, reopenDelay)) {
				return
			}
			if next, err = u.get(ctx, last); err == nil {
				defer next.Body.Close()
				res = next
			}
		}
	}
}

// get opens a stream that begins after the event with the id last. If last is "", it is the
// notification stream, which package stream reopens.
func (u *remote) get(ctx context.Context, last string) (*http.Response, error) {
	r, err := u.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := u.client.Do(r)
	if err != nil {
		return nil, err
	}
	if !isEvents(res) {
		res.Body.Close()
		return nil, &stream.ReopenError{StatusCode: res.StatusCode, ContentType: res.Header.Get("Content-Type")}
	}
	return res, nil
}

// listen passes on the messages that the server sends on its own, for as long as the session lasts
// or until the server refuses. SPEC 9.1.
func (u *remote) listen() {
	defer u.posts.Done()
	for {
		res, err := u.get(u.ctx, "")
		if err == nil {
			for e, failed := range stream.Events(res.Body, u.max) {
				if err = failed; len(e.Data) > 0 {
					u.took(&message{}, res, e.Data)
				}
			}
			res.Body.Close()
		}
		if refused := (*stream.ReopenError)(nil); errors.As(err, &refused) && refused.StatusCode < 500 {
			return // the server offers none
		}
		if !pause(u.ctx, listenDelay) {
			return
		}
	}
}

// pause reports whether d passed before the end of ctx.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

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
	ReopenDelay = 500 * time.Millisecond // before the stream of a request is resumed, or longer if the server asks for it
	MaxResumes  = 10                     // of the stream of a request, without an event
	listenDelay = 5 * time.Second        // between two attempts to open the notification stream
)

// get opens a stream that begins after the event with the id last. If last is "", it is the
// notification stream, which package stream reopens.
func (u *remote) get(ctx context.Context, last string) (*http.Response, error) {
	edit := func(http.Header) {}
	if last != "" {
		edit = func(h http.Header) { h.Set("Last-Event-ID", last) }
	}
	res, err := u.do(ctx, http.MethodGet, nil, edit)
	if err != nil {
		return nil, err
	}
	if !isEvents(res) || res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, &stream.ReopenError{StatusCode: res.StatusCode, ContentType: res.Header.Get("Content-Type")}
	}
	return res, nil
}

// listen passes on the messages that the server sends on its own, for as long as the session lasts
// or until the server refuses. SPEC 9.1.
func (u *remote) listen() {
	defer u.posts.Done()
	opened := false
	for {
		res, err := u.get(u.ctx, "")
		if err == nil {
			opened = true
			e := &exchange{remote: u, m: new(jsonrpc.Message), settled: func() {}}
			for event, failed := range stream.Events(res.Body, u.max) {
				err = failed
				e.take(u.ctx, event.Data, res)
			}
			res.Body.Close()
			if moved := (*stream.ReopenError)(nil); errors.As(err, &moved) && moved.StatusCode < 400 {
				err = nil // get follows it
			}
		}
		if gone := (*stream.ReopenError)(nil); opened && errors.As(err, &gone) && gone.StatusCode == http.StatusNotFound && u.worth() {
			u.forget()
			return
		}
		if isRefusal(err) { // the server offers none
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

// isRefusal reports whether err is an answer to a request for a stream that will not be another one later.
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

package main

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"
)

// SPEC 9.1: how a stream is opened again.
const (
	firstReopen = 500 * time.Millisecond
	mostReopen  = 10 * time.Second
	mostResumes = 10 // of the stream of one request, without an event
)

// follow passes on the stream that answers a request. One that ends too early is taken up where
// it was, if the server has said how.
func (u *remote) follow(ctx context.Context, m *message, res *http.Response) {
	last := ""
	tries := 0
	took := func(e event) {
		tries = 0
		if e.id != "" {
			last = e.id
		}
		if len(e.data) > 0 {
			u.took(m, res, e.data)
		}
	}
	for {
		retry, err := readEvents(res.Body, u.max, took)
		u.mu.Lock()
		_, open := u.open[string(m.ID)]
		u.mu.Unlock()
		if !m.isRequest() || !open || ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the server has closed the stream before it has answered")
		}
		for {
			if tries++; last == "" || tries > mostResumes {
				u.fail(ctx, m, err)
				return
			}
			if !pause(ctx, max(retry, firstReopen)) {
				return
			}
			next, reopened := u.resume(ctx, last)
			if reopened == nil {
				res.Body.Close()
				res = next
				defer next.Body.Close()
				break
			}
			err = reopened
		}
	}
}

// resume opens a stream that begins after an event.
func (u *remote) resume(ctx context.Context, last string) (*http.Response, error) {
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
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		res.Body.Close()
		return nil, &statusError{res.StatusCode, res.Status}
	}
	return res, nil
}

type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// listen passes on what the server sends by itself, for as long as the session lasts.
func (u *remote) listen() {
	defer u.posts.Done()
	delay, last := firstReopen, ""
	for {
		res, err := u.resume(u.ctx, last)
		if err == nil {
			var retry time.Duration
			retry, _ = readEvents(res.Body, u.max, func(e event) {
				delay = firstReopen
				if e.id != "" {
					last = e.id
				}
				if len(e.data) > 0 {
					u.took(&message{}, res, e.data)
				}
			})
			res.Body.Close()
			delay = max(delay, retry)
		}
		var status *statusError
		if errors.As(err, &status) && status.code < 500 {
			return // it offers none
		}
		if !pause(u.ctx, delay) {
			return
		}
		delay = min(delay*6/5, mostReopen)
	}
}

// pause reports false where ctx has ended.
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

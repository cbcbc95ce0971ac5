package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

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

// isRefusal reports whether err is a refusal of a stream that the server would repeat if asked later.
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

package remote

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/stream"
)

// post sends the message of the exchange, forwards what the server sends in its response, and returns when the exchange
// has ended.
func (e *exchange) post(ctx context.Context) {
	read, stop := context.WithCancel(ctx)
	defer stop()
	if !e.m.IsRequest() || e.m.Awaited > 0 { // needs no body, so the limit covers that too
		defer time.AfterFunc(max(AcceptLimit, e.m.Awaited), stop).Stop()
	}
	res, err := e.do(read, http.MethodPost, e.m, "", "")
	if err != nil {
		e.fail(ctx, err)
		return
	}
	defer res.Body.Close()
	e.code, e.session = res.StatusCode, res.Request.Header.Get("Mcp-Session-Id")
	if e.m.Method == "initialize" {
		e.session = res.Header.Get("Mcp-Session-Id")
		defer e.endUnused(e.current())
	}
	e.auth = res.Header.Get("WWW-Authenticate") != ""
	e.status = res.Status
	if kind := res.Header.Get("Content-Type"); kind != "" && res.StatusCode < 300 {
		e.status += ", " + jsonrpc.Shorten(kind)
	}
	if e.code < 300 && !e.m.IsRequest() {
		e.accepted(e.m)
		e.settled()
	}
	if e.code < 300 && isEvents(res) {
		e.streams.Add(1)
		defer e.streams.Add(-1)
	}
	body := bufio.NewReaderSize(res.Body, maxSaid)
	switch kindOf(body, isEvents(res)) {
	case asEvents:
		e.answered()
		e.follow(ctx, read, stop, struct {
			io.Reader
			io.Closer
		}{body, res.Body})
	case asJSON:
		e.readDocument(ctx, body)
	default:
		defer time.AfterFunc(TextLimit, stop).Stop()
		said, err := io.ReadAll(io.LimitReader(body, maxSaid))
		if e.lastNonMessage = string(said); err != nil && e.lastNonMessage == "" && read.Err() == nil {
			e.fail(ctx, err)
			return
		}
		e.refused(ctx)
	}
}

// accepted handles a message that the server has accepted. After notifications/initialized it opens the notification
// stream, if the protocol has one.
func (u *remote) accepted(m *jsonrpc.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.Method == "notifications/initialized" && u.version <= newestWithSessions && u.version >= "2025-03-26" {
		u.posts.Add(1)
		go u.listen(u.session)
	}
}

// readDocument handles a response that is one JSON document.
func (e *exchange) readDocument(ctx context.Context, body io.Reader) {
	switch data, err := io.ReadAll(io.LimitReader(body, int64(e.max)+1)); {
	case err != nil:
		e.fail(ctx, fmt.Errorf("the answer broke off after %d bytes: %w", len(data), err))
	case len(data) > e.max:
		e.fail(ctx, fmt.Errorf("the answer exceeds %d bytes", e.max))
	case !e.take(ctx, data):
		e.lastNonMessage = head(data)
		e.refused(ctx)
	}
}

// errEnded is the error of a stream that ended without an answer.
var errEnded = errors.New("the server closed the stream before it answered")

// follow forwards the events of a stream that answers a request. If the stream ends before the answer and its events
// have ids, follow resumes it, up to MaxResumes times without an event. Then it answers the request with an error. ctx
// is the context of the exchange, and stop ends read, the context of reading from the server.
func (e *exchange) follow(ctx, read context.Context, stop func(), body io.ReadCloser) {
	last, retry, tries := "", time.Duration(0), 0
	for {
		err := errEnded
		for event, failed := range stream.Events(body, e.max) {
			if failed != nil {
				err = failed
				break
			}
			last, retry, tries = cmp.Or(event.ID, last), cmp.Or(event.Retry, retry), 0
			if strings.ContainsFunc(last, unicode.IsControl) { // such an id is not valid in a header
				last = ""
			}
			if e.take(ctx, event.Data) { // many servers do not close the stream after the answer
				defer time.AfterFunc(TextLimit, stop).Stop()
			}
		}
		body.Close()
		if !e.isOpen() || ctx.Err() != nil {
			return
		}
		for next := (*http.Response)(nil); next == nil; {
			if tries++; last == "" || tries > MaxResumes || errors.Is(err, stream.ErrEventTooLarge) || isRefusal(err) {
				if e.lastNonMessage != "" {
					err = fmt.Errorf("%w; before, it sent: %s", err, jsonrpc.Shorten(e.lastNonMessage))
				}
				e.fail(ctx, err)
				return
			}
			if !pause(read, max(retry, ReopenDelay)) {
				return
			}
			if next, err = e.get(read, last); err == nil {
				body, e.resumed = next.Body, true
			}
		}
	}
}

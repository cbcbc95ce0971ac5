package remote

import (
	"errors"
	"net/http"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/stream"
)

// listen forwards the messages of the notification stream, and opens it again when it ends, until the run ends or the
// server refuses the stream. SPEC 9.1.
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
				e.take(u.ctx, event.Data)
			}
			res.Body.Close()
			if moved := (*stream.ReopenError)(nil); errors.As(err, &moved) && moved.StatusCode < 400 {
				err = nil // a redirect; the next get follows it
			}
		}
		if gone := (*stream.ReopenError)(nil); opened && errors.As(err, &gone) && gone.StatusCode == http.StatusNotFound && u.worthRenewing() {
			u.forget()
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

package main

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// The ways in which the models of this program behave.
const (
	healthy       = "healthy"
	beforeHeader  = "before-the-header"
	beforeFirst   = "before-the-first-token"
	behindPings   = "first-token-behind-pings"
	betweenTokens = "between-tokens"
	behindComment = "between-tokens-behind-comments"
	behindPing    = "between-tokens-behind-pings"
	afterTheLast  = "after-the-last-token"
)

var modes = []string{healthy, beforeHeader, beforeFirst, behindPings, betweenTokens, behindComment, behindPing, afterTheLast}

const (
	words   = 30 // of a whole answer
	half    = words / 2
	pace    = 100 * time.Millisecond // of the words and the keep-alives
	ping    = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	comment = ": processing\n\n"
)

// models answers in the two wire forms, at /{mode}/v1/chat/completions and /{mode}/v1/messages.
func models() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{mode}/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		chunk := func(delta, finish string) string {
			return `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"local","choices":[{"index":0,"delta":` +
				delta + `,"finish_reason":` + finish + "}]}\n\n"
		}
		play(w, r, dialect{
			word: func(i int) string { return chunk(fmt.Sprintf(`{"role":"assistant","content":"%d "}`, i), "null") },
			last: chunk("{}", `"stop"`) + "data: [DONE]\n\n",
		})
	})
	mux.HandleFunc("POST /{mode}/v1/messages", func(w http.ResponseWriter, r *http.Request) {
		event := func(name, rest string) string {
			return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", name, name, rest)
		}
		play(w, r, dialect{
			first: event("message_start", `,"message":{"id":"1","type":"message","role":"assistant","model":"local","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`) +
				event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
			word: func(i int) string {
				return event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":"%d "}`, i))
			},
			last: event("content_block_stop", `,"index":0`) +
				event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}`) + event("message_stop", ""),
		})
	})
	return mux
}

// A dialect has the events of one API.
type dialect struct {
	first string
	word  func(i int) string
	last  string
}

// play answers in the mode of the request's path. An answer that stalls does so until the client disconnects.
func play(w http.ResponseWriter, r *http.Request, d dialect) {
	_, _ = io.Copy(io.Discard, r.Body) // net/http detects that a client disconnects only after the body has been read
	mode := r.PathValue("mode")
	stall := func(keepAlive string) {
		for r.Context().Err() == nil {
			say(w, keepAlive)
			pause(r, pace)
		}
	}
	if mode == beforeHeader {
		stall("")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch mode {
	case beforeFirst:
		say(w, comment) // sends the header
		pause(r, time.Hour)
		return
	case behindPings:
		stall(ping)
		return
	}
	say(w, d.first)
	for i := range words {
		say(w, d.word(i))
		pause(r, pace)
		if i+1 < half {
			continue
		}
		switch mode {
		case betweenTokens:
			pause(r, time.Hour)
			return
		case behindComment:
			stall(comment)
			return
		case behindPing:
			stall(ping)
			return
		}
	}
	say(w, d.last)
	if mode == afterTheLast {
		pause(r, time.Hour) // the connection stays open
	}
}

func say(w http.ResponseWriter, s string) {
	if s == "" {
		return
	}
	_, _ = w.Write([]byte(s))
	_ = http.NewResponseController(w).Flush()
}

// pause waits for d, or until the client disconnects.
func pause(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

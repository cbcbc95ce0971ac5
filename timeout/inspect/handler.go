package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Path is the path of the page on [http.DefaultServeMux].
const Path = "/debug/tools"

func init() { http.Handle(Path, Handler(Options{})) }

// Options are the settings of a [Handler]. With the zero Options, only clients on this machine get the page, and it
// cannot abort executions.
type Options struct {
	// Abort allows users of the page to abort executions. Run then returns an error of [timeout.ErrAborted] with a
	// cause that says "stopped by hand".
	Abort bool

	// Allow reports whether a request may be answered; nil allows requests from this machine, under one of its own
	// names and not marked as forwarded. The page shows names of tools, details, errors and stacks, which may be
	// confidential. Requests from pages of other sites, except for a link that a user follows, are refused in any
	// case. An Allow that checks the remote address must check the Host header as well, because another site can
	// make its name resolve to this server. The answer to a request waits for Allow.
	Allow func(*http.Request) bool
}

type handler struct {
	Options
	recorder *recorder
}

// Handler returns a handler that serves the page at any path. The query of the address selects the content:
//
//	?format=html, text, json    the form; by default the one that the client accepts
//	?tool=, ?state=             only these executions
//	?sort=elapsed, silent, beats, tool, id   and dir=up, the smallest first
//	?page=2                     a page of 100 executions
//	?id=7                       one execution; with &stack also its current stack
//	?id=7&format=svg            its timeline
//	?format=events              the page as server-sent events, at most 100 clients at once
//
// If [Options].Abort is set, a POST with id and abort aborts an execution. Recording begins with the first call of
// Handler in the process, which the import of the package makes.
func Handler(o Options) http.Handler {
	if o.Allow == nil {
		o.Allow = fromHere
	}
	return &handler{o, theRecorder()}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", contentPolicy)
	head.Set("Referrer-Policy", "same-origin") // with no-referrer, the page's own POST would have the Origin null
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !h.Allow(r):
		http.Error(w, "inspect: request refused: it must come from this machine, under one of its own names (localhost, 127.0.0.1, [::1])", http.StatusForbidden)
	case !sameOrigin(r):
		http.Error(w, "inspect: request refused: it comes from another site", http.StatusForbidden)
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "inspect: want GET", http.StatusMethodNotAllowed)
	default:
		h.get(w, r)
	}
}

func (h *handler) get(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	q, format := parse(values), formatOf(values.Get("format"), r.Header.Get("Accept"))
	var one *row
	if values.Has("id") {
		if one = find(h.recorder, q); one == nil {
			http.Error(w, fmt.Sprintf("inspect: id=%q: no such execution is running or has ended recently", values.Get("id")), http.StatusNotFound)
			return
		}
	}
	var body bytes.Buffer
	var err error
	kind := ""
	switch {
	case format == "events":
		h.events(w, r, q)
		return
	case format == "svg" && one != nil:
		kind = "image/svg+xml"
		t, _ := timelineOf(q.ID)
		err = t.writeSVG(&body)
	case format == "json":
		kind = "application/json"
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		if one != nil {
			err = e.Encode(one)
		} else {
			err = e.Encode(h.view(q))
		}
	case format == "text":
		kind = "text/plain; charset=utf-8"
		if one != nil {
			err = writeOneText(&body, one)
		} else {
			err = writeText(&body, h.view(q))
		}
	case format == "html":
		kind = "text/html; charset=utf-8"
		if one != nil {
			err = h.writeOne(&body, "one", one, q)
		} else {
			err = pages().ExecuteTemplate(&body, "page", h.view(q))
		}
	default:
		http.Error(w, fmt.Sprintf("inspect: format=%q: want html, text, json, events or, with an id, svg", values.Get("format")), http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, "inspect: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body.Bytes())
}

func (h *handler) view(q query) *view {
	v := look(h.recorder, q)
	v.Abort = h.Abort
	return v
}

// formatOf returns the form that a client gets: the one in asked, the query's format, or else one that accept, the
// Accept header, names. A browser accepts HTML. curl accepts anything and gets text.
func formatOf(asked, accept string) string {
	switch {
	case asked != "":
		return asked
	case strings.Contains(accept, "text/html"):
		return "html"
	case strings.Contains(accept, "application/json"):
		return "json"
	}
	return "text"
}

// post aborts the execution that the form of the request names.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	if !h.Abort {
		http.Error(w, "inspect: aborting is switched off; see Abort of inspect.Options", http.StatusForbidden)
		return
	}
	// sameOrigin also accepts a request with neither header. Current browsers do not send such a POST, but an old one
	// may, so it is refused.
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		http.Error(w, "inspect: POST without Origin: want the origin of the page", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil || !r.PostForm.Has("abort") {
		http.Error(w, "inspect: want a form with id and abort", http.StatusBadRequest)
		return
	}
	q := parse(r.PostForm)
	x := running(q.ID)
	if x == nil {
		http.Error(w, fmt.Sprintf("inspect: id=%q: no such execution is running", r.PostForm.Get("id")), http.StatusNotFound)
		return
	}
	if !x.Abort(nil) {
		http.Error(w, fmt.Sprintf("inspect: execution %d has already been stopped or has ended", q.ID), http.StatusConflict)
		return
	}
	// Not with http.Redirect, which would resolve the query against the directory of the path.
	w.Header().Set("Location", q.Link("id", fmt.Sprint(q.ID)))
	w.WriteHeader(http.StatusSeeOther)
}

const (
	// liveEvery is the interval at which an open page is redrawn.
	liveEvery = time.Second
	// liveShare bounds the time that drawing all open pages takes to one in liveShare parts.
	liveShare  = 10
	maxStreams = 100
	// quietFor is the longest silence of a stream of events. Only a write finds that a client has gone.
	quietFor = 15 * time.Second
	// writeWithin is the longest time for a write to a client.
	writeWithin = 10 * time.Second
)

var streams atomic.Int64

// events sends the content of the page's main element as an event whenever it has changed, until the client has gone.
func (h *handler) events(w http.ResponseWriter, r *http.Request, q query) {
	defer streams.Add(-1)
	if streams.Add(1) > maxStreams {
		http.Error(w, fmt.Sprintf("inspect: %d pages are open, which is the limit", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the server's ReadTimeout must not end the stream
	var last []byte
	var sent time.Time
	for {
		begun := time.Now()
		var body bytes.Buffer
		if err := h.writeLive(&body, q); err != nil {
			return
		}
		var message []byte
		switch {
		case !bytes.Equal(body.Bytes(), last):
			last = body.Bytes()
			message = event(last)
		case time.Since(sent) >= quietFor:
			message = []byte(":\n\n")
		}
		took := time.Since(begun)
		if message != nil {
			sent = time.Now()
			_ = control.SetWriteDeadline(sent.Add(writeWithin))
			if _, err := w.Write(message); err != nil || control.Flush() != nil {
				return
			}
			_ = control.SetWriteDeadline(time.Time{}) // HTTP/2 resets a stream after its write deadline
		}
		pause := time.NewTimer(max(liveEvery, liveShare*took*time.Duration(streams.Load())))
		select {
		case <-r.Context().Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

var errGone = errors.New("inspect: the execution is no longer known")

func (h *handler) writeLive(w io.Writer, q query) error {
	if q.ID == 0 {
		return pages().ExecuteTemplate(w, "main", h.view(q))
	}
	q.Stack = false // taking a stack stops the world, so only the page itself takes one
	one := find(h.recorder, q)
	if one == nil {
		return errGone
	}
	return h.writeOne(w, "onemain", one, q)
}

// event returns text as a server-sent event. It replaces carriage returns by spaces, because each would end a line of
// the event.
func event(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.TrimRight(text, "\n")) {
		fmt.Fprintf(&b, "data: %s\n", bytes.ReplaceAll(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"), []byte(" ")))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// writeOne executes the template part, which is the page of one execution or its live part.
func (h *handler) writeOne(w io.Writer, part string, one *row, q query) error {
	var picture bytes.Buffer
	if t, ok := timelineOf(one.ID); ok {
		if err := t.writeSVG(&picture); err != nil {
			return err
		}
	}
	return pages().ExecuteTemplate(w, part, onePage{
		Row: one, Timeline: template.HTML(picture.String()), Abort: h.Abort && one.state < timeout.StateStopping,
		Stack: one.state < timeout.StateEnded && one.Stack == "", Ended: one.state == timeout.StateEnded, Query: q,
	})
}

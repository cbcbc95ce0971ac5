package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Path is where the page is on [http.DefaultServeMux].
const Path = "/debug/tools"

func init() { http.Handle(Path, Handler()) }

// ErrAborted is the cause of an execution that was aborted from the page.
var ErrAborted = errors.New("inspect: aborted by hand")

// An Option changes what [Handler] serves.
type Option interface{ apply(*handler) }

type optionFunc func(*handler)

func (f optionFunc) apply(h *handler) { f(h) }

// WithAbort has the page abort executions by hand: Run returns an error of [timeout.KindAborted] whose
// cause is [ErrAborted].
func WithAbort() Option { return optionFunc(func(h *handler) { h.abort = true }) }

// WithAllow answers the requests that allow accepts, instead of those of this machine. What is
// shown is not for everybody: the names of tools, details, errors and stacks. Requests that a
// page of another site makes are refused all the same; but where allow goes by the address
// that a request comes from, it must check its Host too, or another site's name may be made
// to resolve to this server. nil changes nothing.
func WithAllow(allow func(*http.Request) bool) Option {
	return optionFunc(func(h *handler) {
		if allow != nil {
			h.allow = allow
		}
	})
}

type handler struct {
	recorder *recorder
	abort    bool
	allow    func(*http.Request) bool
}

// Handler returns what serves the page, at any path. Everything else is the same address with
// a query:
//
//	?format=html, text, json    the form; without it, what the client accepts
//	?tool=, ?state=             only these executions
//	?sort=elapsed, silent, beats, tool, id   and dir=up, the smallest first
//	?page=2                     100 on each
//	?id=7                       one execution, with &stack its stack, as it was then
//	?id=7&format=svg            its timeline
//	?format=events              the page again and again, as server-sent events; 100 at once
//
// With [WithAbort], a POST with id and abort aborts an execution. The first call of Handler in
// a process is where the recording begins; the import of the package makes it.
func Handler(opts ...Option) http.Handler {
	h := &handler{recorder: theRecorder(), allow: fromHere}
	for _, o := range opts {
		if o != nil {
			o.apply(h)
		}
	}
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", contentPolicy)
	head.Set("Referrer-Policy", "same-origin") // with no-referrer the page's own POST would have the Origin null
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !h.allow(r):
		http.Error(w, "inspect: only for requests of this machine, by its own name (localhost, 127.0.0.1, [::1])", http.StatusForbidden)
	case !sameOrigin(r):
		http.Error(w, "inspect: not for requests of another site", http.StatusForbidden)
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
			http.Error(w, fmt.Sprintf("inspect: id=%q: no such execution runs, or has ended lately", values.Get("id")), http.StatusNotFound)
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
			err = pages.ExecuteTemplate(&body, "page", h.view(q))
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
	v.Abort = h.abort
	return v
}

// formatOf is the form that a client wants: a browser says that it takes HTML, and curl that it
// takes anything.
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

// post aborts an execution.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	if !h.abort {
		http.Error(w, "inspect: aborting is switched off; see WithAbort", http.StatusForbidden)
		return
	}
	// sameOrigin lets through who says nothing of where he comes from; that is no browser, and
	// then it must at least not be one by accident.
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		http.Error(w, "inspect: a POST needs an Origin, that of the page", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil || !r.PostForm.Has("abort") {
		http.Error(w, "inspect: want a form with id and abort", http.StatusBadRequest)
		return
	}
	q := parse(r.PostForm)
	x := timeout.ByID(q.ID)
	if x == nil {
		http.Error(w, fmt.Sprintf("inspect: id=%q: no such execution runs", r.PostForm.Get("id")), http.StatusNotFound)
		return
	}
	if !x.Abort(ErrAborted) {
		http.Error(w, fmt.Sprintf("inspect: execution %d had been stopped or had ended before", q.ID), http.StatusConflict)
		return
	}
	// Not http.Redirect: that resolves the query against the directory of the path.
	w.Header().Set("Location", q.Link("id", fmt.Sprint(q.ID)))
	w.WriteHeader(http.StatusSeeOther)
}

const (
	// liveEvery is how often a page that is looked at is drawn anew.
	liveEvery = time.Second
	// liveShare is which part of the time may go into drawing, over all the pages.
	liveShare  = 10
	maxStreams = 100
	// quietFor is how long a stream may have nothing to say: a client that is gone shows
	// when something is written.
	quietFor = 15 * time.Second
	// writeWithin is how long a client may take to read what is sent to it.
	writeWithin = 10 * time.Second
)

var streams atomic.Int64

// events sends what is in the page's main element, whenever it has changed.
func (h *handler) events(w http.ResponseWriter, r *http.Request, q query) {
	defer streams.Add(-1)
	if streams.Add(1) > maxStreams {
		http.Error(w, fmt.Sprintf("inspect: %d pages are looked at, which is the most", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a server's limits on requests are not for this one
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
			_ = control.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream whose deadline passes, also a quiet one
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

var errGone = errors.New("inspect: the execution is not known any more")

func (h *handler) writeLive(w io.Writer, q query) error {
	if q.ID == 0 {
		return pages.ExecuteTemplate(w, "main", h.view(q))
	}
	q.Stack = false // which stops the world, and is asked for once
	one := find(h.recorder, q)
	if one == nil {
		return errGone
	}
	return h.writeOne(w, "onemain", one, q)
}

// event is text as a server-sent event. A carriage return would end a line there.
func event(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.TrimRight(text, "\n")) {
		fmt.Fprintf(&b, "data: %s\n", bytes.ReplaceAll(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"), []byte(" ")))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

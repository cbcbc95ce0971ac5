package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// WithAbort has the page abort executions by hand: Run returns an error of Kind Aborted whose
// cause is [ErrAborted].
func WithAbort() Option { return optionFunc(func(h *handler) { h.abort = true }) }

// WithAllow answers the requests that allow says, instead of those of this machine. What is
// shown is not for everybody: the names of tools, details, errors and stacks. Requests that a
// page of another site makes are refused all the same.
func WithAllow(allow func(*http.Request) bool) Option {
	return optionFunc(func(h *handler) { h.allow = allow })
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
//	?id=7                       one execution, with &stack its stack
//	?id=7&format=svg            its timeline
//	?format=events              the page again and again, as server-sent events
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
	head.Set("Referrer-Policy", "no-referrer")
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
	case format == "events" && one == nil:
		h.events(w, r, q)
		return
	case format == "svg" && one != nil:
		kind = "image/svg+xml"
		t, _ := TimelineOf(q.ID)
		err = t.WriteSVG(&body)
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
			err = h.writeOne(&body, one, q)
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
	x := timeout.Lookup(q.ID)
	if x == nil {
		http.Error(w, fmt.Sprintf("inspect: id=%q: no such execution runs", r.PostForm.Get("id")), http.StatusNotFound)
		return
	}
	if !x.Abort(ErrAborted) {
		http.Error(w, fmt.Sprintf("inspect: execution %d had been stopped or had ended before", q.ID), http.StatusConflict)
		return
	}
	http.Redirect(w, r, q.Link("id", fmt.Sprint(q.ID)), http.StatusSeeOther)
}

// liveEvery is how often a page that is looked at is drawn anew.
const liveEvery = time.Second

// events sends what is in the page's main element, whenever it has changed.
func (h *handler) events(w http.ResponseWriter, r *http.Request, q query) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // a server's limit on responses is not for this one
	var last []byte
	for {
		begun := time.Now()
		var body bytes.Buffer
		if err := pages.ExecuteTemplate(&body, "main", h.view(q)); err != nil {
			return
		}
		if !bytes.Equal(body.Bytes(), last) {
			last = body.Bytes()
			for line := range bytes.Lines(bytes.TrimRight(last, "\n")) {
				if _, err := fmt.Fprintf(w, "data: %s\n", bytes.TrimRight(line, "\r\n")); err != nil {
					return
				}
			}
			if _, err := fmt.Fprint(w, "\n"); err != nil {
				return
			}
			if control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(max(liveEvery, 10*time.Since(begun))):
		}
	}
}

package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// run starts an execution that runs until it is released.
func run(t *testing.T, tool string, detail any, opts ...timeout.Option) (id uint64, letGo func() error) {
	t.Helper()
	ids, end, result := make(chan uint64), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- timeout.Run(context.Background(), func(ctx context.Context) error {
			heartbeat.BeatWith(ctx, detail)
			ids <- timeout.FromContext(ctx).ID()
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, append([]timeout.Option{timeout.WithName(tool), timeout.Config{Total: time.Hour, Idle: time.Minute}}, opts...)...)
	}()
	id = <-ids
	done := false
	letGo = func() error {
		if done {
			return nil
		}
		done = true
		close(end)
		return <-result
	}
	t.Cleanup(func() { _ = letGo() })
	return id, letGo
}

type answer struct {
	code int
	kind string
	body string
	head http.Header
}

func ask(h http.Handler, method, target string, change func(*http.Request)) answer {
	r := httptest.NewRequest(method, "http://127.0.0.1:6060"+target, nil)
	r.RemoteAddr = "127.0.0.1:40000"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{w.Code, w.Header().Get("Content-Type"), w.Body.String(), w.Header()}
}

// SPEC 14.3: the page is HTML, text or JSON, by the query or by the Accept header.
func TestForms(t *testing.T) {
	id, _ := run(t, "forms", "file 37 of 100 <b>")
	h := inspect.Handler(inspect.Options{})
	html := func(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml") }
	for name, tt := range map[string]struct {
		target string
		change func(*http.Request)
		kind   string
		has    string
	}{
		"curl":           {"/", func(r *http.Request) { r.Header.Set("Accept", "*/*") }, "text/plain", "forms"},
		"a browser":      {"/", html, "text/html", "file 37 of 100 &lt;b&gt;"},
		"a program":      {"/", func(r *http.Request) { r.Header.Set("Accept", "application/json") }, "application/json", `"tool": "forms"`},
		"asked for":      {"/?format=json", html, "application/json", `"detail": "file 37 of 100`},
		"one":            {fmt.Sprintf("/?id=%d", id), html, "text/html", "<svg"},
		"one as text":    {fmt.Sprintf("/?id=%d", id), nil, "text/plain", "file 37 of 100 <b>"},
		"one as JSON":    {fmt.Sprintf("/?format=json&id=%d", id), nil, "application/json", fmt.Sprintf(`"id": %d`, id)},
		"with its stack": {fmt.Sprintf("/?stack&id=%d", id), nil, "text/plain", "inspect_test.run"},
		"its picture":    {fmt.Sprintf("/?format=svg&id=%d", id), nil, "image/svg+xml", "forms #"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(h, "GET", tt.target, tt.change)
			if got.code != 200 || !strings.HasPrefix(got.kind, tt.kind) || !strings.Contains(got.body, tt.has) {
				t.Errorf("%d, %s, want %s and %q in it:\n%s", got.code, got.kind, tt.kind, tt.has, got.body)
			}
		})
	}
	for target, code := range map[string]int{"/?format=pdf": 400, "/?format=svg": 400, "/?id=999999999": 404, "/?id=x": 404} {
		if got := ask(h, "GET", target, nil); got.code != code || !strings.Contains(got.body, "inspect: ") {
			t.Errorf("%s: %d, want %d: %s", target, got.code, code, got.body)
		}
	}
	if got := ask(h, "DELETE", "/", nil); got.code != 405 {
		t.Errorf("DELETE: %d", got.code)
	}
}

// SPEC 14.3: only requests from this machine are answered, and none on behalf of another site.
func TestAccess(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"this machine":              {func(*http.Request) {}, 200},
		"IPv6":                      {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:4000", "[::1]:6060" }, 200},
		"IPv4 in IPv6":              {func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:4000" }, 200},
		"localhost":                 {func(r *http.Request) { r.Host = "LocalHost:6060" }, 200},
		"without a port":            {func(r *http.Request) { r.Host = "127.0.0.1" }, 200},
		"another machine":           {func(r *http.Request) { r.RemoteAddr = "192.0.2.7:4000" }, 403},
		"no address":                {func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		"forwarded":                 {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }, 403},
		"forwarded, by the RFC":     {func(r *http.Request) { r.Header.Set("Forwarded", "for=192.0.2.7") }, 403},
		"a name that was rebound":   {func(r *http.Request) { r.Host = "evil.example:6060" }, 403},
		"one that looks like ours":  {func(r *http.Request) { r.Host = "localhost.evil.example" }, 403},
		"another site's script":     {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"a sandbox":                 {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"its own script":            {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:6060") }, 200},
		"another site's picture":    {func(r *http.Request) { fetch(r, "cross-site", "no-cors", "image") }, 403},
		"another site's frame":      {func(r *http.Request) { fetch(r, "cross-site", "navigate", "iframe") }, 403},
		"a link on another site":    {func(r *http.Request) { fetch(r, "cross-site", "navigate", "document") }, 200},
		"the page's own connection": {func(r *http.Request) { fetch(r, "same-origin", "cors", "empty") }, 200},
		"typed":                     {func(r *http.Request) { fetch(r, "none", "navigate", "document") }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(inspect.Handler(inspect.Options{}), "GET", "/", tt.change); got.code != tt.want {
				t.Errorf("%d, want %d", got.code, tt.want)
			}
		})
	}
	remote := func(r *http.Request) { r.RemoteAddr, r.Host = "192.0.2.7:4000", "tools.example" }
	open := inspect.Handler(inspect.Options{Allow: func(r *http.Request) bool { return r.Host == "tools.example" }})
	if got := ask(open, "GET", "/", remote); got.code != 200 {
		t.Errorf("a machine that is allowed: %d", got.code)
	}
	if got := ask(open, "GET", "/", func(r *http.Request) { remote(r); r.Header.Set("Origin", "https://evil.example") }); got.code != 403 {
		t.Errorf("another site's script, on a machine that is allowed: %d", got.code)
	}
}

func fetch(r *http.Request, site, mode, dest string) {
	r.Header.Set("Sec-Fetch-Site", site)
	r.Header.Set("Sec-Fetch-Mode", mode)
	r.Header.Set("Sec-Fetch-Dest", dest)
}

// SPEC 14.3: aborting needs to be switched on, and a same-origin POST.
func TestAbort(t *testing.T) {
	page := func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:6060") }
	for name, tt := range map[string]struct {
		on     bool
		method string
		key    string
		change func(*http.Request)
		want   int
	}{
		"off":               {false, "POST", "abort", page, 403},
		"by GET":            {true, "GET", "abort", page, 200},
		"without an origin": {true, "POST", "abort", func(*http.Request) {}, 403},
		"by another's page": {true, "POST", "abort", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"by a link":         {true, "POST", "abort", func(r *http.Request) { fetch(r, "cross-site", "navigate", "document") }, 403},
		"something else":    {true, "POST", "x", page, 400},
		"on":                {true, "POST", "abort", page, 303},
	} {
		t.Run(name, func(t *testing.T) {
			id, letGo := run(t, "abort", nil)
			form := url.Values{"id": {fmt.Sprint(id)}, tt.key: {"1"}}.Encode()
			target := inspect.Path
			if tt.method == "GET" {
				target += "?" + form
			}
			got := ask(inspect.Handler(inspect.Options{Abort: tt.on}), tt.method, target, func(r *http.Request) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Body = io.NopCloser(strings.NewReader(form))
				tt.change(r)
			})
			if policy := got.head.Get("Referrer-Policy"); policy != "same-origin" {
				t.Errorf("under %q the page's own POST has the Origin null", policy)
			}
			if err := letGo(); got.code != tt.want || errors.Is(err, timeout.ErrAborted) != (tt.want == 303) {
				t.Errorf("%d, want %d; the execution: %v", got.code, tt.want, err)
			}
			if location := got.head.Get("Location"); tt.want == 303 && location != "?id="+fmt.Sprint(id) { // wherever the page is
				t.Errorf("Location %q leads away from the page", location)
			}
		})
	}
}

type page struct {
	Running      int
	States       map[string]int
	Matched      int
	Pages        int
	Tools        []figures
	Runs, Recent []struct {
		ID        uint64
		Tool      string
		State     string
		Outcome   string
		Abandoned bool
		Error     string
		Detail    string
	}
}

type figures struct {
	Tool             string
	Running          int
	Runs             int
	Outcomes         map[string]int
	SuggestedIdleMs  float64
	SilenceMaxMs     float64
	WouldHaveStopped int
}

// figuresOf returns what the page says of a tool.
func figuresOf(t *testing.T, name string) figures {
	t.Helper()
	for _, tool := range see(t, "/").Tools {
		if tool.Tool == name {
			return tool
		}
	}
	t.Fatalf("no %s in the page", name)
	return figures{}
}

func see(t *testing.T, target string) (p page) {
	t.Helper()
	got := ask(inspect.Handler(inspect.Options{}), "GET", target, func(r *http.Request) { r.Header.Set("Accept", "application/json") })
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	return p
}

// SPEC 14.1: many executions are paged, sorted and filtered.
func TestMany(t *testing.T) {
	const n = 250
	var letGo []func() error
	for i := range n {
		_, end := run(t, fmt.Sprintf("many-%d", i%2), nil)
		letGo = append(letGo, end)
	}
	p := see(t, "/?tool=many-1&sort=id&dir=up")
	if p.Matched != n/2 || p.Pages != 2 || len(p.Runs) != 100 {
		t.Errorf("%d matched, %d pages, %d shown", p.Matched, p.Pages, len(p.Runs))
	}
	for i := 1; i < len(p.Runs); i++ {
		if p.Runs[i-1].ID >= p.Runs[i].ID || p.Runs[i].Tool != "many-1" {
			t.Fatalf("%+v", p.Runs[i])
		}
	}
	last := see(t, "/?tool=many-1&sort=id&dir=up&page=2")
	if len(last.Runs) != 25 || last.Runs[0].ID <= p.Runs[99].ID {
		t.Errorf("%d on the last page", len(last.Runs))
	}
	if down := see(t, "/?tool=many-1&sort=id"); down.Runs[0].ID != last.Runs[24].ID {
		t.Errorf("the first, the other way round, is %d", down.Runs[0].ID)
	}
	if none := see(t, "/?tool=many-1&state=held&page=7"); none.Matched != 0 || none.Pages != 1 {
		t.Errorf("%+v", none)
	}
	for _, end := range letGo {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if p := see(t, "/?tool=many-1"); p.Matched != 0 || len(p.Recent) != 100 {
		t.Errorf("%d run, %d shown of those that have ended", p.Matched, len(p.Recent))
	}
}

// SPEC 14.1: outcomes are counted, and 20 successful runs suggest an idle limit.
func TestFigures(t *testing.T) {
	name := fmt.Sprint("figures ", figured.Add(1)) // what is known of a tool stays
	ended := map[string]int{"ok": 19, "error": 1, "idle timeout": 1, "total timeout": 1, "aborted": 1, "panic": 1}
	do := func(fn func(context.Context) error, limits timeout.Config) {
		synctest.Test(t, func(*testing.T) { // so that the runs that succeed take no time
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			_ = timeout.Run(context.WithValue(ctx, cancelKey{}, cancel), fn, limits, timeout.WithName(name), timeout.WithRecover())
		})
	}
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for range 19 {
		do(func(context.Context) error { return nil }, timeout.Config{})
	}
	do(func(context.Context) error { return errors.New("no such file") }, timeout.Config{})
	do(wait, timeout.Config{Idle: time.Millisecond})
	do(wait, timeout.Config{Total: time.Millisecond})
	do(func(ctx context.Context) error {
		ctx.Value(cancelKey{}).(context.CancelFunc)()
		return wait(ctx)
	}, timeout.Config{})
	do(func(context.Context) error { panic("boom") }, timeout.Config{})
	for _, want := range []float64{0, 1000} {
		if got := figuresOf(t, name); fmt.Sprint(got.Outcomes) != fmt.Sprint(ended) || got.SuggestedIdleMs != want {
			t.Errorf("%+v, want %v and %v ms suggested", got, ended, want)
		}
		do(func(context.Context) error { return nil }, timeout.Config{})
		ended["ok"]++
	}
}

// SPEC 14.1: a tool that returns, or panics with, the error of another execution has its own
// outcome, and one whose error cannot be shown has one, too.
func TestOutcomeIsItsOwn(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	release := make(chan struct{})
	defer close(release)
	stopped := map[string]error{
		"idle":      timeout.Run(context.Background(), wait, timeout.Config{Idle: time.Millisecond}),
		"total":     timeout.Run(context.Background(), wait, timeout.Config{Total: time.Millisecond}),
		"abandoned": timeout.Run(context.Background(), func(context.Context) error { <-release; return nil }, timeout.Config{Idle: time.Millisecond, Grace: -1}),
		"aborted":   timeout.Run(context.Background(), func(ctx context.Context) error { timeout.FromContext(ctx).Abort(nil); return nil }),
		"panic":     timeout.Run(context.Background(), func(context.Context) error { panic("boom") }, timeout.WithRecover()),
		"nil":       (*brokenError)(nil),
	}
	for name, err := range stopped {
		for want, fn := range map[string]func(context.Context) error{
			"error": func(context.Context) error { return errors.Join(err) },
			"panic": func(context.Context) error { panic(err) },
		} {
			t.Run(name+", "+want, func(t *testing.T) {
				tool := fmt.Sprintf("own outcome %d", figured.Add(1))
				_ = timeout.Run(context.Background(), fn, timeout.WithName(tool), timeout.WithRecover())
				p := see(t, "/?tool="+strings.ReplaceAll(tool, " ", "+"))
				if len(p.Recent) != 1 || p.Recent[0].Outcome != want || p.Recent[0].Abandoned {
					t.Errorf("%+v, want %q", p.Recent, want)
				}
			})
		}
	}
}

// A brokenError cannot be shown.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

var figured atomic.Int64

type cancelKey struct{}

// serve is a server in memory, and get a request of its client.
func serve(t *testing.T, set func(*http.Server)) (get func(query string) *http.Response) {
	t.Helper()
	server := httptest.NewUnstartedServer(inspect.Handler(inspect.Options{}))
	if set != nil {
		set(server.Config)
	}
	simnet.Start(server)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); server.Close() })
	return func(query string) *http.Response {
		t.Helper()
		r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+"/?"+query, nil)
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
}

// readUntil reads until want has come, and returns all of it.
func readUntil(t *testing.T, r io.Reader, got *strings.Builder, want string) {
	t.Helper()
	for buf := make([]byte, 4096); !strings.Contains(got.String(), want); {
		n, err := r.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v before %s in %s", err, want, got)
		}
	}
}

// A tool's text is always text on the page, and the picture is valid XML.
func TestHostileNames(t *testing.T) {
	const name = `"><script>alert(1)</script>&'` + "\x1b[2J"
	id, _ := run(t, name, name)
	h := inspect.Handler(inspect.Options{})
	for _, target := range []string{"/", fmt.Sprintf("/?id=%d", id), "/?tool=" + url.QueryEscape(name)} {
		got := ask(h, "GET", target, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
		if strings.Contains(got.body, "<script>alert") || strings.Contains(got.body, `"><script`) {
			t.Errorf("%s: %s", target, got.body)
		}
		if policy := got.head.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("policy %q", policy)
		}
		if text := ask(h, "GET", target, nil); strings.Contains(text.body, "\x1b") {
			t.Errorf("%q", text.body)
		}
	}
	picture := ask(h, "GET", fmt.Sprintf("/?format=svg&id=%d", id), nil)
	for d := xml.NewDecoder(strings.NewReader(picture.body)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v: %s", err, picture.body)
		}
	}
}

// A server's limits on requests and responses do not cut a stream, and the number of streams is
// bounded.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := serve(t, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = 3*time.Second, 3*time.Second })
		run(t, "streams", nil) // so that the page changes
		lines := bufio.NewScanner(get("tool=streams&format=events").Body)
		lines.Buffer(nil, 1<<20)
		for events, begun := 0, time.Now(); events < 3 || time.Since(begun) <= 3*time.Second; {
			if !lines.Scan() {
				t.Fatalf("cut after %d events, %v: %v", events, time.Since(begun), lines.Err())
			}
			if lines.Text() == "" {
				events++
			}
		}
		for range 99 {
			if res := get("tool=streams&format=events"); res.StatusCode != 200 {
				t.Fatalf("%s", res.Status)
			}
		}
		if res := get("tool=streams&format=events"); res.StatusCode != 503 {
			t.Errorf("the 101st: %s", res.Status)
		}
		if got := ask(inspect.Handler(inspect.Options{}), "HEAD", "/", nil); got.code != 200 {
			t.Errorf("HEAD: %d", got.code)
		}
	})
}

// An abandoned execution is listed with its stack and cannot be aborted.
func TestAbandoned(t *testing.T) {
	tool := fmt.Sprintf("deaf-%d", figured.Add(1)) // what is known of a tool stays
	end, ids := make(chan struct{}), make(chan uint64, 1)
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		ids <- timeout.FromContext(ctx).ID()
		<-end
		return nil
	}, timeout.WithName(tool), timeout.Config{Idle: time.Millisecond, Grace: time.Millisecond})
	if !errors.Is(err, timeout.ErrIdle) {
		t.Fatal(err)
	}
	id := <-ids
	p := see(t, "/?tool="+tool)
	if len(p.Runs) != 1 || p.Runs[0].State != "abandoned" || p.Runs[0].Outcome != "idle timeout" || len(p.Recent) != 1 || p.Recent[0].Outcome != "idle timeout" || !p.Recent[0].Abandoned {
		t.Errorf("%+v, %+v", p.Runs, p.Recent)
	}
	got := ask(inspect.Handler(inspect.Options{Abort: true}), "GET", fmt.Sprintf("/?id=%d", id), func(r *http.Request) { r.Header.Set("Accept", "text/html") })
	if strings.Contains(got.body, `name="abort"`) || !strings.Contains(got.body, "Where it is now") || !strings.Contains(got.body, "<svg") {
		t.Errorf("%s", got.body)
	}
	close(end)
	for deadline := time.Now().Add(20 * time.Second); len(see(t, "/?tool="+tool).Runs) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has returned, and is still listed")
		}
	}
}

// SPEC 14.1: the page of one execution is live up to its end.
func TestOneIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := serve(t, nil)
		id, letGo := run(t, "one-live", nil)
		res := get(fmt.Sprintf("id=%d&stack=1&format=events", id))
		var got strings.Builder
		readUntil(t, res.Body, &got, ">running<")
		if err := letGo(); err != nil {
			t.Fatal(err)
		}
		readUntil(t, res.Body, &got, ">ok<")
		if strings.Contains(got.String(), "inspect_test.run") {
			t.Error("a stack again and again")
		}
		if res := get("id=999999999&format=events"); res.StatusCode != 404 {
			t.Errorf("one that is not known: %v", res)
		}
	})
}

// SPEC 14.1: an observed execution says so, and says what would have stopped it, during and after
// the run.
func TestObserveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, exceeded, end := make(chan uint64), make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			done <- timeout.Run(t.Context(), func(ctx context.Context) error {
				before <- timeout.FromContext(ctx).ID()
				<-end
				return nil
			}, timeout.Config{Idle: 300 * time.Millisecond, Total: time.Hour}, timeout.WithName("observed"), timeout.WithObserveOnly(),
				timeout.WithHooks(timeout.Hooks{Exceeded: func(context.Context, timeout.Snapshot) { close(exceeded) }}))
		}()
		id := <-before
		h := inspect.Handler(inspect.Options{})
		html := func(r *http.Request) { r.Header.Set("Accept", "text/html") }
		expect := func(target, want string, change func(*http.Request)) {
			t.Helper()
			if got := ask(h, "GET", target, change); !strings.Contains(got.body, want) {
				t.Errorf("%s: no %q in\n%s", target, want, got.body)
			}
		}
		one := fmt.Sprintf("/?id=%d", id)
		all := "/?tool=observed"
		if got := ask(h, "GET", one, html); !strings.Contains(got.body, "None would have stopped it so far") {
			t.Errorf("%s", got.body)
		}
		<-exceeded
		expect(one, "only observed: nothing is stopped by them. The idle limit would have stopped it", html)
		expect(one, "only observed; the idle limit would have stopped it after", nil)
		expect(one+"&format=json", `"wouldStop": "idle limit"`, nil)
		expect(all, "(only observed; <span class=\"near-idle\">idle limit after", html)
		expect(all, "(only observed; idle limit after", nil)
		close(end)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		expect(one, "The idle limit would have stopped it", html)
		expect(one+"&format=json", `"wouldStop": "idle limit"`, nil)
		expect(all, "ok (only observed; idle limit after", nil)
		expect(all, "</span> (only observed; <span", html)
	})
}

// SPEC 14.1: runs that a limit would have stopped are counted per tool.
func TestObservedRunsAreCounted(t *testing.T) {
	h := inspect.Handler(inspect.Options{})
	name := fmt.Sprint("counted", figured.Add(1)) // the figures are those of the process
	synctest.Test(t, func(t *testing.T) {
		for _, silence := range []time.Duration{time.Second, time.Minute - 1, time.Minute, 2 * time.Minute, 2 * time.Hour} {
			err := timeout.Run(t.Context(), func(context.Context) error { time.Sleep(silence); return nil },
				timeout.Config{Idle: time.Minute, Total: time.Hour}, timeout.WithName(name), timeout.WithObserveOnly())
			if err != nil {
				t.Error(err)
			}
		}
	})
	if got := figuresOf(t, name); got.Runs != 5 || got.Outcomes["ok"] != 5 || got.WouldHaveStopped != 3 {
		t.Errorf("%+v", got)
	}
	text := ask(h, "GET", "/?format=text", nil).body
	if !regexp.MustCompile(`TIMED OUT +WOULD HAVE STOPPED`).MatchString(text) || !regexp.MustCompile(`(?m)^`+name+` +0 +5 +0 +0 +3 `).MatchString(text) {
		t.Errorf("%s", text)
	}
	page := ask(h, "GET", "/", func(r *http.Request) { r.Header.Set("Accept", "text/html") }).body
	if !strings.Contains(page, "Would have stopped</th>") || !regexp.MustCompile(`>`+name+`</a></td>.*<td class="n"><span class="near-idle">3</span></td>`).MatchString(page) {
		t.Errorf("%s", page)
	}
}

// A blank import registers the page.
func TestRegistered(t *testing.T) {
	if got := ask(http.DefaultServeMux, "GET", inspect.Path, nil); got.code != 200 {
		t.Errorf("%d", got.code)
	}
}

// A tool's text cannot end an event or a line of it.
func TestEventIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run(t, "lines", "before\r\rdata: after\r\n\ndata: end")
		got := ask(inspect.Handler(inspect.Options{}), "GET", "/?tool=lines&format=events", func(r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 200*time.Millisecond)
			t.Cleanup(cancel)
			*r = *r.WithContext(ctx)
		})
		first, _, _ := strings.Cut(got.body, "\n\n")
		for _, line := range strings.Split(first, "\n") {
			if !strings.HasPrefix(line, "data: ") || strings.Contains(line, "\r") {
				t.Errorf("%q", line)
			}
		}
		if !strings.Contains(first, "before  data: after") || !strings.Contains(first, "data: end") {
			t.Errorf("%s", first)
		}
	})
}

// A nested execution names the enclosing one.
func TestNested(t *testing.T) {
	_ = timeout.Run(context.Background(), func(ctx context.Context) error {
		return timeout.Run(ctx, func(inner context.Context) error {
			got := ask(inspect.Handler(inspect.Options{}), "GET", fmt.Sprintf("/?format=json&id=%d", timeout.FromContext(inner).ID()), nil)
			if want := fmt.Sprintf(`"parent": %d,`, timeout.FromContext(ctx).ID()); !strings.Contains(got.body, want) {
				t.Errorf("%s, want %s in it", got.body, want)
			}
			return nil
		}, timeout.WithName("inner"))
	}, timeout.WithName("outer"))
}

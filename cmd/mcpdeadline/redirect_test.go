package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// A POST is repeated where the standard lets it be, and the error says where any other redirect points. What
// belongs to the server reaches no other origin: neither the body nor any header. The requests are initialize,
// a call, a notification, the request for the notification stream, and that for the end of the session.
func TestRedirects(t *testing.T) {
	const here = "server.test"
	for _, tc := range []struct {
		status   int
		location string
		want     string // part of the error, or "" if the call is answered
	}{
		{307, "/elsewhere", ""},
		{308, "/elsewhere", ""},
		{307, "elsewhere", ""},
		{308, "?to=elsewhere", ""},
		{307, "//server.test/elsewhere", ""},
		{307, "http://server.test/elsewhere", ""},
		{307, "http://SERVER.test:80/elsewhere#part", ""},
		{308, "http://other:word@server.test/elsewhere", ""},
		{301, "/elsewhere", "301 Moved Permanently: the server redirects to http://server.test/elsewhere"},
		{302, "/elsewhere", "302 Found: the server redirects to http://server.test/elsewhere"},
		{303, "/elsewhere", "303 See Other: the server redirects to http://server.test/elsewhere"},
		{300, "/elsewhere", "300 Multiple Choices: the server answered with nothing"},
		{302, "https://login.test/authorize?state=x", "302 Found: the server redirects to https://login.test/authorize?state=x, another origin"},
		{307, "http://other.test/mcp", "307 Temporary Redirect: the server redirects to http://other.test/mcp, another origin"},
		{308, "https://server.test/mcp", "https://server.test/mcp, another origin"},
		{308, "http://server.test:8080/mcp", "http://server.test:8080/mcp, another origin"},
		{307, "http://api.server.test/mcp", "http://api.server.test/mcp, another origin"},
		{307, "http://test/mcp", "http://test/mcp, another origin"},
		{307, "//other.test", "http://other.test, another origin"},
		{307, "http://user:word@other.test/mcp", "http://other.test/mcp, another origin"},
		{307, "http://server.test@other.test/", "http://other.test/, another origin"},
		{307, "file:///etc/passwd", "file:///etc/passwd, another origin"},
		{307, "https://server.test:443/mcp/", "https://server.test:443/mcp/, another origin"},
		{307, "", "307 Temporary Redirect: the server answered with nothing"},
		{301, "", "301 Moved Permanently: the server answered with nothing"},
		{307, "http://[", "Location"},
		{307, "/mcp", "307 Temporary Redirect: stopped after 10 redirects, the last to http://server.test/mcp"},
		{304, "/elsewhere", "304 Not Modified"},
	} {
		bubble(t, fmt.Sprint(tc.status, " ", tc.location), func(t *testing.T) {
			var mu sync.Mutex
			var methods []string
			posts := 0
			h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
				m := received(r)
				mu.Lock()
				defer mu.Unlock()
				if r.Host != here && r.Host != "SERVER.test:80" {
					t.Errorf("%s %s: %v %s", r.Method, r.Host, r.Header, m.Raw)
				}
				elsewhere := r.URL.Path == "/elsewhere" || r.URL.RawQuery == "to=elsewhere"
				if tc.want == "" && !elsewhere || tc.want != "" && m.Method == "tools/call" {
					if posts++; posts > 100 {
						t.Fatal("a loop")
					}
					if tc.location != "" {
						w.Header().Set("Location", tc.location)
					}
					w.WriteHeader(tc.status)
					return
				}
				methods = append(methods, r.Method+" "+m.Method)
				user, word, _ := r.BasicAuth()
				if r.Header.Get("X-Key") != "secret" || r.Header.Get("Cookie") != "a=b" || user != "" || word != "" {
					t.Errorf("%v", r.Header)
				}
				if m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != "s" {
					t.Errorf("%s %s: %v", r.Method, m.Method, r.Header)
				}
				if !begins(w, r, m, "s") {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, m.ID)
				}
			}, "-header", "X-Key: secret", "-header", "Cookie: a=b")
			h.initialized()
			got := string(h.answered("1", "tools/call", `{"name":"a","arguments":{"word":"hush"}}`).raw)
			if tc.want == "" != strings.Contains(got, `"done"`) || !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
			synctest.Wait()
			_ = h.in.Close()
			<-h.ended
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(methods)
			want := "DELETE , GET , POST initialize, POST notifications/initialized"
			if tc.want == "" {
				want += ", POST tools/call"
			}
			if got := strings.Join(methods, ", "); got != want {
				t.Errorf("%s, want %s\n%s", got, want, h.stderr())
			}
		})
	}
}

// A server behind a gateway that ends TLS redirects to itself without encryption, where the port is another, too.
func TestRedirectWithoutEncryption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := connectURL(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, "http://"+r.Host+"/mcp/", http.StatusTemporaryRedirect)
		}, "-url", "https://server.test/mcp", "-header", "Authorization: Bearer secret")
		got := string(h.answered("1", "initialize", initialize).raw)
		if !strings.Contains(got, "redirects to http://server.test/mcp/, which is not encrypted") || asked != 1 {
			t.Errorf("%s after %d requests", got, asked)
		}
	})
}

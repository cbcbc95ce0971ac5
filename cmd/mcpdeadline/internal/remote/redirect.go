package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 10

// A redirectError reports a redirect that is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// do sends a request, and follows redirects as far as the standard lets the request be repeated as it is: a
// POST after 307 and 308 only, where others would make a GET of it. What goes to the server is for its origin
// only. Package http would send most headers, and the body, to any other.
func (u *remote) do(ctx context.Context, method string, m *jsonrpc.Message, edit func(http.Header)) (*http.Response, error) {
	to := u.url
	for redirects := 0; ; redirects++ {
		r, err := u.request(ctx, method, to, m)
		if err != nil {
			return nil, err
		}
		if edit != nil {
			edit(r.Header)
		}
		res, err := u.client.Do(r)
		if err != nil {
			return nil, err
		}
		next, err := u.redirected(method, to, res)
		if next == nil && err == nil {
			return res, nil
		}
		_, _ = io.CopyN(io.Discard, res.Body, maxSaid) // the connection can be used again
		res.Body.Close()
		if err != nil {
			return nil, err
		}
		if redirects == maxRedirects {
			return nil, &redirectError{fmt.Sprintf("%s: stopped after %d redirects, the last to %s", res.Status, maxRedirects, shown(next))}
		}
		to = next
	}
}

// redirected returns where a response redirects to, or nil if it does not.
func (u *remote) redirected(method string, from *url.URL, res *http.Response) (*url.URL, error) {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusMultipleChoices, http.StatusUseProxy:
	default:
		return nil, nil
	}
	location := res.Header.Get("Location")
	if location == "" {
		return nil, &redirectError{res.Status + ": a redirect that does not say where to"}
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, &redirectError{fmt.Sprintf("%s: a redirect to what is no URL: %s", res.Status, jsonrpc.Shorten(location))}
	}
	if to.Scheme == "http" && u.url.Scheme == "https" && to.Hostname() == u.url.Hostname() { // a server that does not know of the gateway in front of it
		return nil, &redirectError{fmt.Sprintf("%s: the server redirects to %s, which is not encrypted, and is sent neither the message nor its headers; give that with https as -url", res.Status, shown(to))}
	}
	if origin(to) != origin(u.url) {
		return nil, &redirectError{fmt.Sprintf("%s: the server redirects to %s, another origin, which is sent neither the message nor its headers; if you trust it, give that as -url", res.Status, shown(to))}
	}
	repeats := res.StatusCode == http.StatusTemporaryRedirect || res.StatusCode == http.StatusPermanentRedirect
	if !repeats && (method != http.MethodGet || res.StatusCode == http.StatusMultipleChoices || res.StatusCode == http.StatusUseProxy) {
		return nil, &redirectError{fmt.Sprintf("%s: the server redirects to %s, where a %s must not be repeated; give that as -url", res.Status, shown(to), method)}
	}
	to.User, to.Fragment = u.url.User, ""
	return to, nil
}

// origin returns what a URL shares with those that may get the same headers.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// shown returns a URL as it is shown.
func shown(u *url.URL) string {
	bare := *u
	bare.User = nil
	return jsonrpc.Shorten(bare.String())
}

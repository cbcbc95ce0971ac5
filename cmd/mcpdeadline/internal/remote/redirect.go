package remote

import (
	"context"
	"errors"
	"fmt"
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

// do sends a request, and follows redirects.
func (u *remote) do(ctx context.Context, method string, m *jsonrpc.Message, edit func(http.Header)) (*http.Response, error) {
	r, err := u.request(ctx, method, m)
	if err != nil {
		return nil, err
	}
	if edit != nil {
		edit(r.Header)
	}
	res, err := u.client.Do(r)
	if not := (*redirectError)(nil); errors.As(err, &not) {
		err = not // and not in which request
	}
	return res, err
}

// redirects is the CheckRedirect of a client of the server at a URL. It follows a redirect as far as the standard lets the
// request be repeated as it is: a POST after 307 and 308 only, where others would make a GET of it. What goes to the server
// is for its origin only. Package http would send most headers, and the body, to any other.
func redirects(own *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		to, method, why := next.URL, via[0].Method, ""
		switch {
		case to.Scheme == "http" && own.Scheme == "https" && to.Hostname() == own.Hostname(): // a server that does not know of the gateway in front of it
			why = "which is not encrypted, and is sent neither the message nor its headers; give that with https as -url"
		case origin(to) != origin(own):
			why = "another origin, which is sent neither the message nor its headers; if you trust it, give that as -url"
		case next.Method != method:
			why = "where a " + method + " must not be repeated; give that as -url"
		case len(via) > maxRedirects:
			return &redirectError{fmt.Sprintf("%s: stopped after %d redirects, the last to %s", next.Response.Status, maxRedirects, shown(to))}
		default:
			to.User, next.Header = own.User, via[0].Header.Clone() // package http may have left some out
			return nil
		}
		return &redirectError{fmt.Sprintf("%s: the server redirects to %s, %s", next.Response.Status, shown(to), why)}
	}
}

// origin returns what a URL shares with those that may get the same headers.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// shown returns a URL for a message: without the user, and cut to a length that suits.
func shown(u *url.URL) string {
	bare := *u
	bare.User = nil
	return jsonrpc.Shorten(bare.String())
}

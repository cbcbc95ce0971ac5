package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
)

// maxRedirects is the largest number of redirects of one request that are followed.
const maxRedirects = 10

// A redirectError reports a redirect that is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// do sends an HTTP request with m, if it is not nil, as its body, and with the given header, if value is not "". It
// follows redirects. The error is a *redirectError if a redirect is not followed.
func (u *remote) do(ctx context.Context, method string, m *jsonrpc.Message, header, value string) (*http.Response, error) {
	r, err := u.request(ctx, method, m)
	if err != nil {
		return nil, err
	}
	if value != "" {
		r.Header.Set(header, value)
	}
	res, err := u.client.Do(r)
	if not := (*redirectError)(nil); errors.As(err, &not) {
		err = not // without the method and the URL that http.Client adds
	}
	return res, err
}

// redirects returns the CheckRedirect function for a client of the server at own. It allows a redirect to the same
// origin that repeats the method: for a POST only 307 and 308. Package http would follow redirects to other origins,
// and send them the body and most headers.
func redirects(own *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		to, method, why := next.URL, via[0].Method, ""
		switch {
		case to.Scheme == "http" && own.Scheme == "https" && to.Hostname() == own.Hostname(): // behind a gateway
			why = "which is not encrypted, and is sent neither the message nor its headers; give that with https as -url"
		case origin(to) != origin(own):
			why = "another origin, which is sent neither the message nor its headers; if you trust it, give that as -url"
		case next.Method != method:
			why = "where a " + method + " must not be repeated; give that as -url"
		case len(via) > maxRedirects:
			return &redirectError{fmt.Sprintf("%s: stopped after %d redirects, the last to %s", next.Response.Status, maxRedirects, shown(to))}
		default:
			to.User, next.Header = own.User, via[0].Header.Clone() // package http may have removed some headers
			return nil
		}
		return &redirectError{fmt.Sprintf("%s: the server redirects to %s, %s", next.Response.Status, shown(to), why)}
	}
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// shown returns a URL for an error, without the user and the password, and shortened.
func shown(u *url.URL) string {
	bare := *u
	bare.User = nil
	return jsonrpc.Shorten(bare.String())
}

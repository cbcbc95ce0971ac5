package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// balance returns a handler that forwards each request to the next backend in turn.
func balance(backends []*url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, // RoundTrip chooses the backend
		// Each request has its own connection, which a backend that has ended refuses.
		Transport: &roundRobin{backends: backends, to: &http.Transport{DisableKeepAlives: true}},
	}
}

type roundRobin struct {
	backends []*url.URL
	turn     atomic.Uint64
	to       http.RoundTripper
}

// RoundTrip sends the request to the next backend in turn that accepts the connection. It does not repeat a request
// that was sent, which may have had an effect.
func (b *roundRobin) RoundTrip(r *http.Request) (res *http.Response, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	for range b.backends {
		next := b.backends[b.turn.Add(1)%uint64(len(b.backends))]
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host = next.Scheme, next.Host, ""
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res, err = b.to.RoundTrip(out)
		if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" {
			return res, err
		}
	}
	return nil, err
}

package request

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Limits bound one request. With the zero Limits, only the caller's context bounds the request.
type Limits struct {
	// Timeout is how long to wait for the answer or, with ResetOnProgress, from one progress
	// notification for the request to the next. 0 or less means no such limit.
	Timeout time.Duration
	// MaxTotal caps the elapsed time. It fires on time whether or not progress arrives. 0 or less
	// means no cap.
	MaxTotal time.Duration
	// ResetOnProgress makes each progress notification for the request restart Timeout.
	// The request is sent with a progress token for it.
	ResetOnProgress bool
}

// DefaultTimeout is the Timeout to use for requests without a better one.
const DefaultTimeout = 60 * time.Second

// connectTimeout is the limit of each request of the handshake.
const connectTimeout = 5 * time.Second

// DefaultLimits returns limits per method for [New], in a new map: for tools/call 30 s from one
// sign of progress to the next, and 30 min in all, which is the total of [timeout.Default]; for
// list and get calls 10 s; for initialize and server/discover 5 s.
func DefaultLimits() map[string]Limits {
	return map[string]Limits{
		"tools/call":      {Timeout: 30 * time.Second, MaxTotal: timeout.Default().Total, ResetOnProgress: true},
		"tools/list":      {Timeout: 10 * time.Second},
		"resources/*":     {Timeout: 10 * time.Second},
		"prompts/*":       {Timeout: 10 * time.Second},
		"initialize":      {Timeout: connectTimeout},
		"server/discover": {Timeout: connectTimeout},
	}
}

type limitsKey struct{}

// WithLimits returns a context whose next request has the limits l, in place of those of its
// method. Requests that are made on behalf of that request, for example by the handler of an
// elicitation, do not inherit them.
func WithLimits(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, limitsKey{}, &l)
}

// table finds the limits of a method.
type table struct {
	defaults Limits
	exact    map[string]Limits
	prefixes []prefix // the longest first
}

type prefix struct {
	text string
	Limits
}

func newTable(defaults Limits, perMethod map[string]Limits) table {
	t := table{defaults: defaults, exact: make(map[string]Limits)}
	for method, l := range perMethod {
		if text, ok := strings.CutSuffix(method, "*"); ok {
			t.prefixes = append(t.prefixes, prefix{text, l})
		} else {
			t.exact[method] = l
		}
	}
	slices.SortFunc(t.prefixes, func(a, b prefix) int { return cmp.Compare(len(b.text), len(a.text)) })
	return t
}

// find returns the limits of a method, and whether they are its own or the defaults.
func (t *table) find(method string) (_ Limits, own bool) {
	if l, ok := t.exact[method]; ok {
		return l, true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(method, p.text) {
			return p.Limits, true
		}
	}
	return t.defaults, false
}

// limits returns the limits of one request, and ctx without the limits of WithLimits.
func (c *Limiter) limits(ctx context.Context, method string, declared *Limits) (Limits, context.Context) {
	l, ok := c.table.find(method)
	if !ok && declared != nil {
		l = *declared
	}
	if own, _ := ctx.Value(limitsKey{}).(*Limits); own != nil {
		l = *own
		ctx = context.WithValue(ctx, limitsKey{}, (*Limits)(nil))
	}
	// A stream ends when it is closed, and its context outlives the request
	// (SPEC 9.1); nobody answers a notification.
	if method == "subscriptions/listen" || strings.HasPrefix(method, "notifications/") {
		l = Limits{}
	}
	return l, ctx
}

package request

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Limits bound one request (SPEC 8.1). The zero Limits are none.
type Limits struct {
	// Timeout is the longest time to wait for the answer or, with ResetOnProgress, from
	// one sign of progress to the next. 0 or less is no such limit.
	Timeout time.Duration
	// MaxTotal caps the elapsed time, whatever the progress. 0 or less is no cap.
	MaxTotal time.Duration
	// ResetOnProgress makes each progress notification for the request restart Timeout.
	ResetOnProgress bool
}

// DefaultTimeout is the timeout of a request where nobody has thought of another
// (SPEC 8.1).
const DefaultTimeout = 60 * time.Second

// ConnectTimeout is the limit of each phase of connecting (SPEC 8.4).
const ConnectTimeout = 5 * time.Second

// Reference gives the limits per method that SPEC 8.4 recommends, in a map that is the
// caller's: a tool call may take 30 s from one sign of progress to the next, and no
// longer than an execution with the limits of [timeout.Default]; list and get calls
// have 10 s, the requests of connecting 5 s.
func Reference() map[string]Limits {
	return map[string]Limits{
		"tools/call":      {Timeout: 30 * time.Second, MaxTotal: timeout.Default().Total, ResetOnProgress: true},
		"tools/list":      {Timeout: 10 * time.Second},
		"resources/*":     {Timeout: 10 * time.Second},
		"prompts/*":       {Timeout: 10 * time.Second},
		"initialize":      {Timeout: ConnectTimeout},
		"server/discover": {Timeout: ConnectTimeout},
	}
}

type limitsKey struct{}

// WithLimits gives the limits of the next request made with the context; they go before
// those of its method. What is called on behalf of that request, such as a handler of
// an elicitation, does not inherit them.
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

func (t *table) find(method string) Limits {
	if l, ok := t.exact[method]; ok {
		return l
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(method, p.text) {
			return p.Limits
		}
	}
	return t.defaults
}

// Methods reports whether a method is among the given ones, or matches one of them that
// is a prefix with a star.
func Methods(methods ...string) func(method string) bool {
	set := make(map[string]Limits)
	for _, m := range methods {
		set[m] = Limits{Timeout: 1}
	}
	t := newTable(Limits{}, set)
	return func(method string) bool { return t.find(method) != Limits{} }
}

// limits gives what applies to one request, and the context without its WithLimits.
func (c *Client) limits(ctx context.Context, method string) (Limits, context.Context) {
	l := c.table.find(method)
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

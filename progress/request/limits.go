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
	// Timeout is the longest wait for the answer. With ResetOnProgress, the wait begins again at each progress
	// notification for the request. 0 or less means no such limit.
	Timeout time.Duration
	// MaxTotal is the longest wait for the answer, whether or not progress arrives. 0 or less means no such limit.
	MaxTotal time.Duration
	// ResetOnProgress makes [Do] send the request with a progress token of its own, and each progress notification
	// for the request restart Timeout. It has no effect if Timeout is 0 or less.
	ResetOnProgress bool
}

// defaultTimeout is the Timeout of [Options] for a request to which no other limit applies.
const defaultTimeout = 60 * time.Second

// connectTimeout is the default Timeout of initialize and of server/discover.
const connectTimeout = 5 * time.Second

// DefaultLimits returns a new map, the default of PerMethod in [Options]: for tools/call a Timeout of 30 s, which
// progress renews, and the total of [timeout.Default], usually 30 min, as the MaxTotal; for tools/list, resources/*
// and prompts/* a Timeout of 10 s; for initialize and server/discover a Timeout of 5 s.
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

// WithLimits returns a context with which [Do] applies the limits l, in place of those of the method. Requests that are
// sent with the context that Do passes to send, for example by the handler of an elicitation, do not inherit l.
func WithLimits(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, limitsKey{}, &l)
}

// A table maps methods to limits; see [Options].
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

// find returns the limits of a method. own is false if they are the defaults.
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

// limits returns the limits of one request, and a context without the limits of [WithLimits]. The limits are those of
// WithLimits in ctx or, in this order, those of PerMethod for the method, declared, or the default ones. Notifications
// and subscriptions/listen have none.
func (c *Limiter) limits(ctx context.Context, method string, declared *Limits) (Limits, context.Context) {
	l, ok := c.table.find(method)
	if !ok && declared != nil {
		l = *declared
	}
	if own, _ := ctx.Value(limitsKey{}).(*Limits); own != nil {
		l = *own
		ctx = context.WithValue(ctx, limitsKey{}, (*Limits)(nil))
	}
	// subscriptions/listen opens a stream that has no end of its own (SPEC 9.1), and a notification has no answer.
	if method == "subscriptions/listen" || strings.HasPrefix(method, "notifications/") {
		l = Limits{}
	}
	return l, ctx
}

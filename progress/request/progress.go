package request

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/identity"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Limiter holds the limits per method of one client, and its requests in flight that progress renews. It is safe for
// concurrent use. [New] returns a Limiter; the zero Limiter is not usable.
type Limiter struct {
	table   table
	options []timeout.Setting

	prefix string // the random prefix of all tokens that this Limiter creates
	last   atomic.Uint64

	mu      sync.Mutex
	waiting map[waiterKey]*waiter
}

// A waiterKey identifies a request. The session is part of the key, so that a server cannot renew the limits of a
// request to another server.
type waiterKey struct {
	session any
	number  string
}

// A waiter is a request that progress renews. monitor is nil until the execution of the request begins; a Beat of a nil
// Monitor does nothing.
type waiter struct {
	monitor atomic.Pointer[heartbeat.Monitor]
}

// New returns a Limiter with the Limits, PerMethod, Logger, Hooks and ObserveOnly of o; a nil o means the zero
// [Options]. New copies the map PerMethod. The other fields of o are for the adapters.
func New(o *Options) *Limiter {
	if o == nil {
		o = new(Options)
	}
	defaults, perMethod := Limits{Timeout: defaultTimeout}, o.PerMethod
	if o.Limits != nil {
		defaults = *o.Limits
	}
	if perMethod == nil {
		perMethod = DefaultLimits()
	}
	options := []timeout.Setting{timeout.WithHooks(o.Hooks)}
	if o.Logger != nil {
		options = append(options, timeout.WithLogger(o.Logger))
	}
	if o.ObserveOnly {
		options = append(options, timeout.WithObserveOnly())
	}
	return &Limiter{
		table:   newTable(defaults, perMethod),
		options: options,
		prefix:  "td-" + rand.Text()[:10] + "-",
		waiting: make(map[waiterKey]*waiter),
	}
}

// Progress renews the limit of the request that a progress notification belongs to. token is the token of the
// notification, and session is the Session of the [Call] on whose connection it arrived. A notification that arrives
// after the request has ended renews nothing, and is not an error.
//
// Progress returns the token for the caller's handler: the token that the caller has set, as encoding/json decodes it,
// even if the request has ended. If the caller has set no token, wanted is false, because the caller has not requested
// progress. A token that c has not created is returned unchanged, with wanted true.
func (c *Limiter) Progress(session, token any) (own any, wanted bool) {
	text, _ := token.(string)
	text, ours := strings.CutPrefix(text, c.prefix)
	if !ours {
		return token, true
	}
	number, suffix, _ := strings.Cut(text, "-")
	key := waiterKey{identity.Key(session), number}
	c.mu.Lock()
	w := c.waiting[key]
	c.mu.Unlock()
	if w != nil {
		w.monitor.Load().Beat()
	}
	return decodeOwn(suffix)
}

// await registers a request, before its execution begins, and returns its token. The caller must call leave when the
// request has ended. ok is false, and nothing is registered, if the type of own is not that of a valid token.
func (c *Limiter) await(session, own any) (token string, w *waiter, leave func(), ok bool) {
	suffix, ok := encodeOwn(own)
	if !ok {
		return "", nil, nil, false
	}
	key := waiterKey{identity.Key(session), strconv.FormatUint(c.last.Add(1), 10)}
	w = new(waiter)
	c.mu.Lock()
	c.waiting[key] = w
	c.mu.Unlock()
	leave = func() {
		c.mu.Lock()
		delete(c.waiting, key)
		c.mu.Unlock()
	}
	return c.prefix + key.number + suffix, w, leave, true
}

// encodeOwn returns the suffix of a token of a Limiter that contains the caller's own token. ok is false if own is
// neither nil nor a string or number, or cannot be marshalled. A table of tokens would have to keep each token for as
// long as a late notification may arrive, which has no bound.
func encodeOwn(own any) (suffix string, ok bool) {
	switch own := own.(type) {
	case nil:
		return "", true
	case string:
		return "-s" + own, true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, json.Number, json.RawMessage:
		b, err := json.Marshal(own)
		return "-j" + string(b), err == nil
	}
	return "", false // another type may have a MarshalJSON method, which would run before any limit applies
}

// decodeOwn is the reverse of encodeOwn, without the hyphen. ok is false if the caller has set no token.
func decodeOwn(suffix string) (own any, ok bool) {
	if text, ok := strings.CutPrefix(suffix, "s"); ok {
		return text, true
	}
	text, ok := strings.CutPrefix(suffix, "j")
	return own, ok && json.Unmarshal([]byte(text), &own) == nil
}
